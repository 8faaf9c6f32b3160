/* hiding.h: privacy bounds for a row whose step in the training of a model (sgd.h) is followed by
** further steps. The noise of these further steps hides the row.
**
** Both bounds below hold for the mechanism of sgd.h exactly as the code runs: on the lattice, with
** all rounding, and for the last point before its projection.
**
** The path bound (Balle et al. 2019, Theorem 5) uses the distance T_0 and the clock of the path in
** sgd.h (descent_design). The theorem's proof works for hypothesis tests as well as for Renyi
** divergences (Bok, Su and Altschuler 2024). In this proof, the noise of step j is compared with
** the same noise moved by an integer vector of norm at most a_j (sgd.h). The proof uses a
** continuous Gaussian of variance V - 1/12 that is rounded to integers. Rounding and moving by an
** integer vector give the same result in either order. The total variation distance between the
** rounded Gaussian and the discrete noise of variance V is at most gaussian_lattice_slack() for
** each coordinate. The privacy profile of the row is therefore at most that of a Gaussian of the
** path's rate, plus (1 + e^epsilon) times the slack of all draws from the row's own step on.
**
** The contraction bound (Asoodeh et al. 2020, Theorems 3 and 4, with Balle et al. 2019, Theorem
** 1(2), applied again in each step) starts with d_0, the hockey-stick divergence of order e^epsilon
** after the row's own step. Each later step replaces d by
**     d <- d E(epsilon~, moved),  epsilon~ = ln(1 + (e^epsilon - 1)/d).
** Here `moved` = L * 2 radius + 5/4 sqrt(dim) lattice steps. This is an upper bound on the distance
** of two points that start a step in the ball, after the step and its rounding. E is the largest
** divergence between the noise and the noise moved by this distance:
**     Gaussian   the divergence of rounded Gaussians, plus the slack of one step; for large
**                epsilon, exp(-(epsilon - r)^2/(4r)), where r = moved^2/(2 variance) is the exact
**                rate
**     Laplace    [1 - e^((epsilon - moved/t)/2)/cosh(1/(2t))]_+, where `moved` is in the sum norm,
**                which is at most sqrt(dim) times the distance above
** In one dimension, the Laplace formula is exact for the discrete distribution, except that the
** formula also accepts a distance `moved` that is not an integer. Several coordinates never have a
** larger divergence than one coordinate that moves by the sum of all moves. To see this for two
** coordinates, let the smaller move be m steps and fix the outcome of its coordinate. The privacy
** loss of this outcome is at most m/t. The divergence is then at most that of the other coordinate
** at order e^(epsilon - m/t). This equals the divergence of one coordinate that moves by the sum.
**
** The code combines both bounds: after each step, d is replaced by the path bound if the path bound
** is smaller. A bound may ignore any number of steps at the end, because they are
** post-processing. */
#ifndef DIFFUSE_MODELS_HIDING_H
#define DIFFUSE_MODELS_HIDING_H

#include "models/sgd.h"

/* For each private row i, lowers epsilons[i - 1], a valid epsilon already, to the least epsilon
** that the contraction bound proves for this delta; delta = 0 means pure differential privacy. If
** more than 256 steps follow a row, it may only get the epsilon of the next row after it that is
** not skipped. */
void hiding_lower(const struct course *course, double delta, double *epsilons);

/* For Gaussian noise: sets epsilons[i - 1] to the epsilon that the path bound proves for row i and
** this delta. `rates` are those of descent_rates(). */
void hiding_path_epsilons(const struct course *course, double delta, const double *rates,
                          double *epsilons);

/* For Gaussian noise and a random stop (Asoodeh et al. 2020, Theorem 5): returns the delta of the
** worst row, the first one. The descent reads only the first `stop` rows, where stop is uniform on
** 1 .. rows. The delta of row i is the mean of its deltas over all stops: 0 if the descent stops
** before the row, and d_k, the contraction bound, if it stops k steps after it: sum_{k=0}^{rows -
** i} d_k/rows. The bound also holds for an observer who knows the stop, because the duration of a
** release shows it. hiding_stop_deltas() sets deltas[i - 1] for each row. */
double hiding_stop_delta(const struct course *course, double epsilon);
void hiding_stop_deltas(const struct course *course, double epsilon, double *deltas);

/* Sets descent->variance to the least variance at which the worst row's delta is at most `delta`;
** 0: none. */
void hiding_stop_variance(struct descent *descent, const struct layout *shape,
                          const struct design *design, double epsilon, double delta);

/* The privacy profile of the last private row by the contraction bound: delta at PROFILE_NODES
** values of epsilon, which are enough to bound Renyi divergences. */
#define PROFILE_NODES 1553
struct profile {
  int count;
  double rate; /* rate of the row's own step */
  /* Upper bound on the log of the factor by which the later steps multiply delta beyond the last
  ** node. */
  double log_factor;
  double pure;                   /* the epsilon at delta = 0; infinite for Gaussian noise */
  double epsilon[PROFILE_NODES]; /* increasing from 0 */
  double log_delta[PROFILE_NODES];
};
void hiding_profile(const struct course *course, struct profile *profile);

/* Returns an upper bound r on the Renyi divergence of order alpha > 1 of two distributions with
** this profile, in both directions. With g = e^epsilon,
**     e^((alpha-1) r) = 1 + alpha (alpha-1) int_1^inf (g^(alpha-2) + g^(-alpha-1)) delta(ln g) dg.
** Returns infinity if a double cannot hold the bound. delta is a decreasing and convex function of
** g, so between two nodes delta lies below its chord. */
double profile_rdp(const struct profile *profile, double alpha);

#endif
