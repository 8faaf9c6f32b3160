/*
** pure_mechanisms.h: the privacy of pure mechanisms: Laplace noise that is added once or twice,
** randomized response, and mechanisms of bounded range.
**
** Sources for Laplace noise: Balle et al. 2019, Example 2 and Lemma 3; Asoodeh et al. 2020, Lemma
** 1. Scales are > 0 and sensitivities are >= 0. Orders alpha are >= 1. Order 1 gives the
** Kullback-Leibler divergence, and order infinity gives the epsilon of pure differential privacy.
** The relative error is at most 1e-12 wherever the result is a normal double. The functions do not
** check their arguments.
*/
#ifndef DIFFUSE_MATH_PURE_MECHANISMS_H
#define DIFFUSE_MATH_PURE_MECHANISMS_H

/*
** Returns the Renyi divergence of order alpha of two Laplace distributions whose centres are
** `sensitivity` apart.
*/
double laplace_rdp(double alpha, double sensitivity, double scale);

/*
** Returns the Renyi divergence of order alpha > 1 of two discrete Laplace distributions on the
** integers, P(k) proportional to exp(-|k|/scale). sensitivity and scale are integers >= 1. The
** formula is exact. The result is at most 1 + 1/(2 scale) times laplace_rdp(). At scale 1 the
** result is up to 26% above laplace_rdp().
*/
double discrete_laplace_rdp(double alpha, double sensitivity, double scale);

/*
** Returns the distance z = sensitivity/scale at which Laplace noise has the zCDP rate `rate` > 0. z
** is the root of z + e^-z - 1 = rate. The left side is the Renyi divergence of order 1. It is also
** the zCDP rate, because the divergence of order alpha is at most alpha times the divergence of
** order 1.
*/
double laplace_distance(double rate);

/*
** Example 2: returns a bound on the Renyi divergence for the sum of two Laplace noises. The paper
** gives a bound for each intermediate point w, and this function returns the least of these bounds.
** For finite alpha the result is below laplace_rdp() of either noise. These two values are the
** bounds at the two ends of the range of w, and the least bound is in the interior of the range.
** For finite alpha the result is not tight. For alpha = infinity it is exact.
*/
double iterated_laplace_rdp(double alpha, double sensitivity, double scale1, double scale2);

/* Lemma 3, equation (6): returns the density of the sum of two Laplace noises at a finite x. */
double laplace2_density(double x, double scale1, double scale2);

/*
** Returns the number x such that the sum of `terms` independent Laplace noises of scale 1 exceeds x
** with this probability. 0 < probability <= 1/2, 1 <= terms <= 100.
*/
double laplace_sum_quantile(int terms, double probability);

/*
** Returns the least epsilon at which the sum of two Laplace noises is epsilon-DP:
** sensitivity/max(scale1, scale2).
*/
double laplace2_epsilon(double sensitivity, double scale1, double scale2);

/*
** Lemma 1: laplace_hockey_stick() returns [1 - e^((epsilon - distance)/2)]_+, the hockey-stick
** divergence of order e^epsilon of two Laplace distributions whose centres are `distance` scales
** apart. laplace_log_hockey_stick() returns the natural logarithm of this divergence, or -infinity
** if the divergence is 0. The logarithm is accurate even if the divergence is close to 1. epsilon
** and distance are >= 0 and not both infinite.
*/
double laplace_hockey_stick(double epsilon, double distance);
double laplace_log_hockey_stick(double epsilon, double distance);

/* ---- two values of the loss ------------------------------------------------------------------ */

/*
** Pure mechanisms whose privacy loss takes two values in the worst case. The privacy loss of a
** mechanism of bounded range lies, for any two neighbours, in an interval of length epsilon that
** contains 0 (Dong, Durfee and Rogers 2020). The exponential mechanism is an example.
*/

/*
** Returns the epsilon at which randomized response has the zCDP rate `rate` > 0: the root of
** epsilon tanh(epsilon/2) = rate.
*/
double response_epsilon(double rate);

/*
** Returns the Renyi divergence of order alpha >= 1 of binary randomized response with parameter
** epsilon. This is the worst case of all epsilon-DP mechanisms. Order 1 gives the Kullback-Leibler
** divergence, and order infinity gives epsilon.
*/
double response_rdp(double alpha, double epsilon);

/*
** Returns the RDP at order alpha of a mechanism of bounded range epsilon. The result is the smaller
** of alpha epsilon^2/8 (Cesar and Rogers 2021) and response_rdp().
*/
double bounded_range_rdp(double alpha, double epsilon);

/*
** Returns the zCDP rate mu^2/2 of Gaussian noise that is at least as easy to test as every
** mechanism of bounded range epsilon, so that exact Gaussian accounting may charge this rate.
**
** mu = 2 PhiInv(1/(1 + e^(-epsilon/2))); README.md has the proof. epsilon < 600.
*/
double bounded_range_gaussian_rate(double epsilon);

/* Returns the epsilon whose bounded_range_gaussian_rate() is `rate` > 0. */
double bounded_range_gaussian_epsilon(double rate);

#endif
