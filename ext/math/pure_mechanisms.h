/* pure_mechanisms.h: the privacy of pure mechanisms: Laplace noise that is added once or twice,
** randomized response, and mechanisms of bounded range.
**
** Sources for Laplace noise: Balle et al. 2019, Example 2 and Lemma 3; Asoodeh et al. 2020, Lemma
** 1. Scales are > 0 and sensitivities are >= 0. Orders alpha are >= 1: order 1 gives the
** Kullback-Leibler divergence, and order infinity the epsilon of pure differential privacy. The
** relative error is at most 1e-12 wherever the result is a normal double. The functions do not
** check their arguments. */
#ifndef DIFFUSE_MATH_PURE_MECHANISMS_H
#define DIFFUSE_MATH_PURE_MECHANISMS_H

/* The Renyi divergence of order alpha of two Laplace distributions with centres `sensitivity`
** apart. */
double laplace_rdp(double alpha, double sensitivity, double scale);

/* The same for alpha > 1 and two discrete Laplace distributions on the integers, P(k) proportional
** to exp(-|k|/scale), with integers sensitivity, scale >= 1. The formula is exact, and at most 1 +
** 1/(2 scale) times laplace_rdp(); at scale 1 up to 26% above it. */
double discrete_laplace_rdp(double alpha, double sensitivity, double scale);

/* Returns the distance z = sensitivity/scale at which Laplace noise has the zCDP rate `rate` > 0:
** the root of z + e^-z - 1 = rate. The left side, the Renyi divergence of order 1, is also the zCDP
** rate, because the divergence of order alpha is at most alpha times as large. */
double laplace_distance(double rate);

/* Example 2: a bound on the Renyi divergence for the sum of two Laplace noises, the least of those
** that the paper gives for each intermediate point w. For finite alpha it is below laplace_rdp() of
** either noise, the bounds at the two ends of the range of w, and not tight. For alpha = infinity
** it is exact. */
double iterated_laplace_rdp(double alpha, double sensitivity, double scale1, double scale2);

/* Lemma 3, equation (6): the density of the sum of two Laplace noises at a finite x; and the least
** epsilon at which their sum is epsilon-DP, sensitivity/max(scale1, scale2). */
double laplace2_density(double x, double scale1, double scale2);
double laplace2_epsilon(double sensitivity, double scale1, double scale2);

/* Returns the x that the sum of 1 <= terms <= 100 independent Laplace noises of scale 1 exceeds
** with this probability, in (0, 1/2]. */
double laplace_sum_quantile(int terms, double probability);

/* Lemma 1: [1 - e^((epsilon - distance)/2)]_+, the hockey-stick divergence of order e^epsilon of
** two Laplace distributions whose centres are `distance` scales apart, and its natural logarithm,
** which is accurate even if the divergence is close to 1, and -infinity if it is 0. epsilon and
** distance are >= 0 and not both infinite. */
double laplace_hockey_stick(double epsilon, double distance);
double laplace_log_hockey_stick(double epsilon, double distance);

/* ---- two values of the loss ------------------------------------------------------------------ */

/* Pure mechanisms whose privacy loss takes two values in the worst case. The privacy loss of a
** mechanism of bounded range, such as the exponential mechanism, lies for any two neighbours in an
** interval of length epsilon that contains 0 (Dong, Durfee and Rogers 2020). */

/* Returns the epsilon at which randomized response has the zCDP rate `rate` > 0: the root of
** epsilon tanh(epsilon/2) = rate. */
double response_epsilon(double rate);

/* Returns the Renyi divergence of order alpha >= 1 of binary randomized response with parameter
** epsilon, the worst case of all epsilon-DP mechanisms. */
double response_rdp(double alpha, double epsilon);

/* Returns the RDP at order alpha of a mechanism of bounded range epsilon: the smaller of alpha
** epsilon^2/8 (Cesar and Rogers 2021) and response_rdp(). */
double bounded_range_rdp(double alpha, double epsilon);

/* Returns the zCDP rate mu^2/2 of Gaussian noise that is at least as easy to test as every
** mechanism of bounded range epsilon < 600, so that exact Gaussian accounting may charge it: mu = 2
** PhiInv(1/(1 + e^(-epsilon/2))); README.md has the proof. And the epsilon of a rate > 0. */
double bounded_range_gaussian_rate(double epsilon);
double bounded_range_gaussian_epsilon(double rate);

#endif
