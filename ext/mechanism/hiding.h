/*
** hiding.h: bounds on how well the steps after a row of a model hide the row.
**
** Two bounds hold for the mechanism of sgd.h exactly as it runs: on the lattice, with its rounding,
** and for the last point before its projection.
**
** The path bound (Balle et al. 2019, Theorem 5) uses the path of sgd.h: its distance T_0 and its
** clock. The interpolation along the path holds for hypothesis tests as well as for Renyi
** divergences (Bok, Su and Altschuler 2024). Given the points before it, each step compares its
** noise with the same noise moved by an integer vector whose norm is at most a_j. Rounding a
** Gaussian of variance V - 1/12 commutes with that move. The rounded Gaussian is within
** gaussian_lattice_slack() of the noise of each coordinate. The profile is therefore that of a
** Gaussian of the path's rate, plus (1 + e^epsilon) times the slack of all draws from the row on.
**
** The contraction bound (Asoodeh et al. 2020, Theorems 3 and 4, with Balle et al. 2019, Theorem
** 1(2), applied again in each step) starts with d_0, the divergence of order e^epsilon after the
** row's own step. Each later step changes it to
**     d <- d E(epsilon~, moved),  epsilon~ = ln(1 + (e^epsilon - 1)/d).
** Here moved = L * 2 radius + 5/4 sqrt(dim) lattice steps bounds the distance of two points after a
** step, which starts in the ball and is rounded. E is the largest divergence between the noise and
** the noise moved by that distance:
**     Gaussian   that of rounded Gaussians, with the slack of one step; and for large epsilon
**                exp(-(epsilon - r)^2/(4r)), r = moved^2/(2 variance), from the exact rate
**     Laplace    [1 - e^((epsilon - moved/t)/2)/cosh(1/(2t))]_+, moved in the sum norm, which is
**                at most sqrt(dim) times the distance above
** The Laplace formula is exact for the discrete distribution in one dimension, up to the position
** within a step. Several coordinates are never worse than one coordinate that moves by as much as
** all of them. To see this for two coordinates, fix the outcome of one, whose loss is at most m h,
** h = 1/t. The divergence of the other is then at most its divergence at e^(epsilon - mh). Choosing
** the smaller of both for m gives the same bound as one shift by the sum.
**
** The walk combines both bounds: d is at most the path bound at the same step. Everything after a
** step is post-processing, so any number of later steps may be left out.
*/
#ifndef DIFFUSE_MECHANISM_HIDING_H
#define DIFFUSE_MECHANISM_HIDING_H

#include "mechanism/sgd.h"

/* A model on its lattice. It does not own the descent. */
struct hiding {
  const struct descent *descent;
  struct course course;
};

/* Initialises `hiding`. The shape and the shift are those of the release. */
void hiding_make(struct hiding *hiding, const struct descent *descent, const struct layout *shape,
                 int shift);

/*
** Lowers epsilons[i - 1], for each private row i, to the least epsilon that contraction proves with
** this delta. The entries must be valid before the call. If more than 256 steps follow a row, the
** function computes only some rows and gives the rows before each of them the same epsilon. delta 0
** is pure differential privacy.
*/
void hiding_lower(const struct hiding *hiding, double delta, double *epsilons);

/*
** Sets epsilons[i - 1] to the epsilon that the path of row i proves with this delta, from the rates
** of descent_rates(). For Gaussian noise.
*/
void hiding_path_epsilons(const struct hiding *hiding, double delta, const double *rates,
                          double *epsilons);

/*
** Returns the delta of the worst row with a random stop (Asoodeh et al. 2020, Theorem 5). The
** descent reads only the first `stop` rows, where stop is uniform on 1 .. rows. The delta of row i
** is the mean over all stops: 0 for stops before the row, and d_k for a stop k steps after it. This
** gives sum_{k=0}^{rows - i} d_k/rows. The bound also holds for an observer who knows the stop,
** which the duration of a release reveals. The worst row is the first. For Gaussian noise.
*/
double hiding_stop_delta(const struct hiding *hiding, double epsilon);

/* Sets deltas[i - 1] to the delta of row i. */
void hiding_stop_deltas(const struct hiding *hiding, double epsilon, double *deltas);

/*
** Sets the least variance at which the worst row's delta is at most `delta`, or 0 if there is none.
*/
void hiding_stop_variance(struct descent *descent, const struct layout *shape,
                          const struct design *design, double epsilon, double delta);

/*
** The privacy profile of the last private row by contraction: delta at PROFILE_NODES values of
** epsilon, which suffice to compute Renyi divergences.
*/
#define PROFILE_NODES 1553
struct profile {
  int count;
  double rate;                   /* the rate of the row's own step */
  double log_factor;             /* bounds the remaining factor beyond the last node */
  double pure;                   /* epsilon of pure differential privacy, or infinity */
  double epsilon[PROFILE_NODES]; /* increasing from 0 */
  double log_delta[PROFILE_NODES];
};
void hiding_profile(const struct hiding *hiding, struct profile *profile);

/*
** Returns an upper bound on the Renyi divergence of order alpha > 1 of distributions with that
** profile, in both directions:
**     e^((alpha-1) r) = 1 + alpha (alpha-1) int_1^inf (g^(alpha-2) + g^(-alpha-1)) delta(ln g) dg.
** Returns infinity if a double cannot hold the bound. delta falls and is convex in g, so between
** nodes it lies below its chord.
*/
double profile_rdp(const struct profile *profile, double alpha);

#endif
