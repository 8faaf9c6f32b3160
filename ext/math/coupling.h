/*
** coupling.h: Gaussian noise added step by step between Lipschitz maps, by Renyi couplings
** (Balle et al. 2019, Theorems 2 and 4, Examples 1 and 3).
**
** alpha >= 1 is the Renyi order (1 is the Kullback-Leibler divergence; at infinity every result
** is infinite unless it is 0). Distances and sensitivities are not negative; standard deviations
** are not negative and not all 0. Relative error is at most 1e-12 wherever the result is a normal
** double; arguments are not checked.
*/
#ifndef DIFFUSE_MATH_COUPLING_H
#define DIFFUSE_MATH_COUPLING_H

#include "math/scaled.h"

/* Renyi divergence of two Gaussians: alpha sensitivity^2/(2 sigma^2). Exact. */
double gaussian_rdp(double alpha, double sensitivity, double sigma);

/* Example 1: the same for noise that is added twice, with variance sigma1^2 + sigma2^2. Exact. */
double iterated_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2);

/*
** Example 3: noise sigma1, then a `lipschitz`-Lipschitz map of the whole space, then noise sigma2:
** variance sigma1^2 + sigma2^2/lipschitz^2. At lipschitz = 0 the map is constant and the divergence
** 0.
*/
double lipschitz_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2,
                              double lipschitz);

/*
** Theorem 4: `steps` >= 1 times a `lipschitz`-Lipschitz map of a convex set into itself, Gaussian
** noise sigma and a projection, from two points (or couplings) `distance` apart. path_iteration_rdp
** is the least bound that equation (2) gives, on the path that moves by L^(2i) in step i. Linear
** maps attain it, and it also holds for lipschitz > 1. printed_iteration_rdp is equation (3) as
** printed.
*/
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps);
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps);

/*
** Theorem 4 with a path of its own, step by step: step j is a lipschitz-Lipschitz map and noise
** sigma; `shift` is the distance of the coupling from its predecessor, W_infinity(mu_(i-1), mu_i).
** With P_j the product of the first j constants, shift i of r is covered by the noise of step
** j = r - i + 1, after j maps:
**     alpha/2 sum_i (P_j shift_i/sigma_j)^2,
** which for equal steps is equation (2). best_path_rdp is the least over all paths whose shifts add
** up to `distance`, alpha distance^2/2/sum_j (sigma_j/P_j)^2. It ignores the member shift.
*/
struct path_step {
  double sigma, lipschitz, shift;
};
double given_path_rdp(double alpha, const struct path_step *steps, long count);
double best_path_rdp(double alpha, const struct path_step *steps, long count, double distance);

/*
** 1/(1 + L^-2 + ... + L^(-2 terms)) for lipschitz L >= 0, terms >= 0: the factor in the bounds for
** paths.
*/
struct scaled inverse_geometric(double lipschitz, double terms);

#endif
