/*
** hiding.h: how far the steps after a row of a model hide it.
**
** Two bounds hold for the mechanism of sgd.h as it runs: on the lattice, with its roundings, and
** for the last point before its projection.
**
** The path (Balle et al. 2019, Theorem 5) is that of sgd.h: distance T_0 covered by a clock. Its
** interpolation holds for hypothesis tests as well as for Renyi divergences (Bok, Su and
** Altschuler 2024): given the points before it, each step compares its noise with itself, moved by
** an integer vector whose norm is at most a_j. Rounding a Gaussian of variance V - 1/12 commutes
** with that move, and is within gaussian_lattice_slack() of the noise of each coordinate. So the
** profile is that of a Gaussian of the path's rate, with (1 + e^epsilon) times the slack of all
** draws from the row on.
**
** Contraction (Asoodeh et al. 2020, Theorems 3 and 4, with Balle et al. 2019, Theorem 1(2), anew in
** each step). d_0, the divergence of order e^epsilon after the row's own step, becomes
**     d <- d E(epsilon~, moved),  epsilon~ = ln(1 + (e^epsilon - 1)/d)
** in each later step, where moved = L * 2 radius + 5/4 sqrt(dim) lattice steps is how far two
** points can be apart after a step, which starts in the ball and is rounded, and E the largest
** divergence of the noise from itself, moved so far:
**     Gaussian   that of rounded Gaussians, with the slack of one step; and for large epsilon
**                exp(-(epsilon - r)^2/(4r)), r = moved^2/(2 variance), from the exact rate
**     Laplace    [1 - e^((epsilon - moved/t)/2)/cosh(1/(2t))]_+, moved in the sum norm, where
**                sqrt(dim) times the above bounds it. That is exact for the discrete law in one
**                dimension, up to the place of a step, and several coordinates are never worse than
**                one that moves by as much: given the outcome of one of two, whose loss is at most
**                m h, h = 1/t, the other is left with at most its divergence at e^(epsilon - mh),
**                and choosing the smaller of both for m shows the same as one shift by the sum.
** Both are combined: d is at most what the path to the same step says. What comes after a step is
** post-processing, so any number of later steps may be left out.
*/
#ifndef DIFFUSE_MECHANISM_HIDING_H
#define DIFFUSE_MECHANISM_HIDING_H

#include "mechanism/sgd.h"

/* A model on its lattice, of which the descent is not owned. */
struct hiding {
  const struct descent *descent;
  struct course course;
};

/* shape and shift are those of the release. */
void hiding_make(struct hiding *hiding, const struct descent *descent, const struct layout *shape,
                 int shift);

/*
** Lowers epsilons[i - 1], for each private row i, to the least epsilon with this delta that
** contraction gives. The entries must be valid before. If more than 256 steps follow a row,
** only some rows are computed, and the rows before each of them get the same epsilon. delta 0: pure
** differential privacy.
*/
void hiding_lower(const struct hiding *hiding, double delta, double *epsilons);

/*
** Sets epsilons[i - 1] to the epsilon of the path of row i with this delta, from the rates of
** descent_rates(). Gaussian noise.
*/
void hiding_path_epsilons(const struct hiding *hiding, double delta, const double *rates,
                          double *epsilons);

/*
** Random stop (Asoodeh et al. 2020, Theorem 5): only the first `stop` rows are read, where stop is
** uniform on 1 .. rows. Row i is protected with the mean over stops of its delta after them, 0 for
** those before it: sum_{k=0}^{rows - i} d_k/rows. It holds for whoever learns where it stopped,
** too: the time that a release takes says it. The worst row is the first. Gaussian noise.
*/
double hiding_stop_delta(const struct hiding *hiding, double epsilon);

/* The delta of every row, deltas[i - 1]. */
void hiding_stop_deltas(const struct hiding *hiding, double epsilon, double *deltas);

/* Sets the least variance at which the worst row's delta is at most this; 0 where there is none. */
void hiding_stop_variance(struct descent *descent, const struct layout *shape,
                          const struct design *design, double epsilon, double delta);

/*
** The privacy profile of the last private row by contraction: delta at each of PROFILE_NODES values
** of epsilon, which are enough to compute Renyi divergences from it.
*/
#define PROFILE_NODES 1553
struct profile {
  int count;
  double rate;                   /* the rate of the row's own step */
  double log_factor;             /* bound on the factor that is left beyond the last node */
  double pure;                   /* epsilon of pure differential privacy; infinite without */
  double epsilon[PROFILE_NODES]; /* increasing from 0 */
  double log_delta[PROFILE_NODES];
};
void hiding_profile(const struct hiding *hiding, struct profile *profile);

/*
** An upper bound on the Renyi divergence of order alpha > 1 of laws with that profile, both ways:
**     e^((alpha-1) r) = 1 + alpha (alpha-1) int_1^inf (g^(alpha-2) + g^(-alpha-1)) delta(ln g) dg,
** infinite where it would not be a double. delta falls and is convex in g, so between nodes it is
** below its chord.
*/
double profile_rdp(const struct profile *profile, double alpha);

#endif
