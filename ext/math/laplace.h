/*
** laplace.h: privacy of Laplace noise, once and twice.
**
** Sources: Balle et al. 2019, Example 2 and Lemma 3; Asoodeh et al. 2020, Lemma 1. Scales are
** positive; sensitivities are not negative; orders alpha are at least 1, where 1 is the
** Kullback-Leibler divergence and infinity is pure differential privacy. Relative error is at most
** 1e-12 wherever the result is a normal double; arguments are not checked.
*/
#ifndef DIFFUSE_MATH_LAPLACE_H
#define DIFFUSE_MATH_LAPLACE_H

/*
** Renyi divergence of order alpha of two Laplace distributions whose centres are `sensitivity`
** apart.
*/
double laplace_rdp(double alpha, double sensitivity, double scale);

/*
** The same for discrete Laplace distributions on the integers, P(k) proportional to
** exp(-|k|/scale). sensitivity and scale are integers of at least 1. The result is exact. It is at
** most 1 + 1/(2 scale) times laplace_rdp(); at scale 1 it is up to a quarter larger. alpha > 1.
*/
double discrete_laplace_rdp(double alpha, double sensitivity, double scale);

/*
** The distance z, in scales, at which Laplace noise costs a zCDP rate: z + e^-z - 1 = rate. The
** left side is the divergence of order 1; at every order alpha the divergence is at most alpha
** times as large. rate > 0.
*/
double laplace_distance(double rate);

/*
** Example 2: a bound on the Renyi divergence for the sum of two Laplace noises, minimised over the
** intermediate point w of the paper. It is below laplace_rdp of either noise for every finite alpha
** (F below is strictly convex with its minimum in the interior), but not tight. alpha = infinity is
** exact.
*/
double iterated_laplace_rdp(double alpha, double sensitivity, double scale1, double scale2);

/* Lemma 3, equation (6): density at x of the sum of two Laplace noises. Finite x. */
double laplace2_density(double x, double scale1, double scale2);

/* Pure differential privacy of that sum: sensitivity/max(scale1, scale2). Exact. */
double laplace2_epsilon(double sensitivity, double scale1, double scale2);

/*
** Lemma 1: hockey-stick divergence of order e^epsilon of two Laplace distributions whose centres
** are `distance` scales apart, [1 - e^((epsilon - distance)/2)]_+, and its natural logarithm
** (-infinity for 0), which is accurate also where the divergence is close to 1. epsilon, distance
** >= 0, not both infinite.
*/
double laplace_hockey_stick(double epsilon, double distance);
double laplace_log_hockey_stick(double epsilon, double distance);

#endif
