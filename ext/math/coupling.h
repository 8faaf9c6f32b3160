/*
** coupling.h: privacy of Gaussian noise that is added step by step between Lipschitz maps. The
** bounds use Renyi couplings (Balle et al. 2019, Theorems 2 and 4, Examples 1 and 3).
**
** alpha >= 1 is the Renyi order. Order 1 gives the Kullback-Leibler divergence. At order infinity
** every result is 0 or infinite. Distances and sensitivities are >= 0. Standard deviations are >=
** 0, and at least one of them is positive. The relative error is at most 1e-12 wherever the result
** is a normal double. The functions do not check their arguments.
*/
#ifndef DIFFUSE_MATH_COUPLING_H
#define DIFFUSE_MATH_COUPLING_H

#include "math/scaled.h"

/* The Renyi divergence of two Gaussians: alpha sensitivity^2/(2 sigma^2). This formula is exact. */
double gaussian_rdp(double alpha, double sensitivity, double sigma);

/*
** Example 1: returns the Renyi divergence if Gaussian noise is added twice. The sum of the two
** noises is Gaussian noise of variance sigma1^2 + sigma2^2, so the result is exact.
*/
double iterated_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2);

/*
** Example 3: returns a bound on the Renyi divergence of a process with three steps. The process
** adds noise sigma1, applies a map of the whole space with Lipschitz constant `lipschitz`, and adds
** noise sigma2. The bound is the divergence for one noise of variance sigma1^2 +
** sigma2^2/lipschitz^2. If lipschitz = 0, the map is constant and the divergence is 0.
*/
double lipschitz_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2,
                              double lipschitz);

/*
** Theorem 4: bounds on the Renyi divergence of the outcomes of two processes of `steps` >= 1 steps.
** Each step applies a map of a convex set into itself with Lipschitz constant L = `lipschitz`, adds
** Gaussian noise sigma and projects onto the set. The processes start from two points (or two
** coupled distributions) that are `distance` apart. Equation (2) gives a bound for each path of
** distributions between the two starts. path_iteration_rdp() returns the least of these bounds. The
** path with the least bound moves in step i by an amount proportional to L^(2i). Linear maps attain
** this bound. The bound also holds for L > 1. printed_iteration_rdp() returns the
** bound of equation (3) as the paper prints it.
*/
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps);
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps);

/*
** Theorem 4 for steps with different parameters. Step j applies a map with Lipschitz constant
** `lipschitz` and adds noise sigma. A path has r shifts, where r is the number of steps. Shift i is
** the distance W_infinity(mu_(i-1), mu_i) between two neighbouring distributions of the path. Let
** P_j be the product of the Lipschitz constants of the first j steps. The noise of step j = r - i +
** 1 covers shift i. By then, j maps have multiplied this shift by at most P_j. given_path_rdp()
** returns
**     alpha/2 sum_i (P_j shift_i/sigma_j)^2,
** which is equation (2) if all steps are equal. best_path_rdp() returns the least value of this sum
** over all paths whose shifts add up to `distance`: alpha distance^2/2/sum_j (sigma_j/P_j)^2.
** best_path_rdp() ignores the member `shift`.
*/
struct path_step {
  double sigma, lipschitz, shift;
};
double given_path_rdp(double alpha, const struct path_step *steps, long count);
double best_path_rdp(double alpha, const struct path_step *steps, long count, double distance);

/*
** Returns 1/(1 + L^-2 + ... + L^(-2 terms)) with L = lipschitz >= 0, terms >= 0. This factor occurs
** in the bounds for paths.
*/
struct scaled inverse_geometric(double lipschitz, double terms);

#endif
