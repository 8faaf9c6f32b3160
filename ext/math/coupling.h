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
** Example 1: the same divergence if noise is added twice. The noises add up to one noise of
** variance sigma1^2 + sigma2^2, so the result is exact.
*/
double iterated_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2);

/*
** Example 3: noise sigma1, then a map of the whole space with Lipschitz constant `lipschitz`, then
** noise sigma2. The bound is the divergence for one noise of variance sigma1^2 +
** sigma2^2/lipschitz^2. If lipschitz = 0, the map is constant and the divergence is 0.
*/
double lipschitz_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2,
                              double lipschitz);

/*
** Theorem 4: bounds for a process of `steps` >= 1 steps. Each step applies a map of a convex set
** into itself with Lipschitz constant L = `lipschitz`, adds Gaussian noise sigma and projects onto
** the set. The two processes start from points (or couplings) that are `distance` apart.
** path_iteration_rdp() returns the least bound that equation (2) gives. The path with this bound
** moves by an amount proportional to L^(2i) in step i. Linear maps attain this bound. The bound
** also holds for L > 1. printed_iteration_rdp() returns equation (3) as printed.
*/
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps);
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps);

/*
** Theorem 4 for steps that differ. Step j applies a map with Lipschitz constant `lipschitz` and
** adds noise sigma. `shift` is the distance between two neighbouring distributions of the path,
** W_infinity(mu_(i-1), mu_i). Let P_j be the product of the Lipschitz constants of the first j
** steps. The noise of step j = r - i + 1 covers shift i of r, which j maps have scaled by then.
** given_path_rdp() returns
**     alpha/2 sum_i (P_j shift_i/sigma_j)^2,
** which is equation (2) if all steps are equal. best_path_rdp() returns the least such value over
** all paths whose shifts add up to `distance`: alpha distance^2/2/sum_j (sigma_j/P_j)^2.
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
