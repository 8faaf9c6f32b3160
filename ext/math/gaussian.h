/*
** gaussian.h: the exact privacy profile of the Gaussian mechanism.
**
** A mechanism of zCDP rate `rate` that is exactly Gaussian (mu = sqrt(2 rate) = sensitivity/sigma)
** is (epsilon, delta)-DP iff delta >= gaussian_delta(rate, epsilon) (Balle and Wang 2018, Theorem
** 8; Balle et al. 2019, section 5; Asoodeh et al. 2020, Lemma 2: theta_{e^epsilon}(mu)). Adaptive
** composition adds rates.
**
** All functions: finite arguments inside the stated domain, NaN outside it; relative error at most
** 1e-12 wherever the result is a normal double (rates 1e-12 to 1e6, delta down to 1e-300); 1e-14
** was measured against 70 digits. One result is less accurate: for an epsilon below mu/500, where
** delta is close to gaussian_delta(rate, 0), the absolute error is up to 2e-15 mu. The functions
** round to nearest; rounding.h rounds in the direction of privacy.
*/
#ifndef DIFFUSE_MATH_GAUSSIAN_H
#define DIFFUSE_MATH_GAUSSIAN_H

#include <stdint.h>

/* Least delta at which `rate` is (epsilon, delta)-DP. rate >= 0, epsilon >= 0 (infinity: 0). */
double gaussian_delta(double rate, double epsilon);

/*
** The natural logarithm of gaussian_delta(), also where delta itself would underflow. -infinity for
** delta = 0.
*/
double gaussian_log_delta(double rate, double epsilon);

/* Least epsilon >= 0 at which `rate` is (epsilon, delta)-DP. rate >= 0, 0 < delta < 1. */
double gaussian_epsilon(double rate, double delta);

/* Largest rate that is (epsilon, delta)-DP. epsilon >= 0, 0 < delta < 1. */
double gaussian_rate(double epsilon, double delta);

/*
** Upper bound on the total variation distance between one coordinate of discrete Gaussian noise of
** integer variance `variance` and the rounded continuous Gaussian of variance `variance` - 1/12:
** 0.0035 (1 + 1.12/s)/s^4 + 1.1 exp(-2 pi^2 variance), s^2 = variance - 1/12. For each coordinate
** drawn, the exact-Gaussian accountant pays this slack times (1 + e^epsilon). variance >= 2^20.
*/
double gaussian_lattice_slack(uint64_t variance);

/*
** The largest slack that one coordinate of a release can cost: design_make() chooses a variance of
** at least 2^40. The constant is a little larger, so that a sum of a million of them can be rounded
** up at each addition.
*/
#define GAUSSIAN_DRAW_SLACK (0.0035 * 0x1p-80 * (1.0 + 0x1p-18))

/*
** Largest rate that is (epsilon, delta)-DP beside a total lattice slack: gaussian_rate() at delta -
** (1 + e^epsilon) slack. NaN if the slack takes half of delta or more. slack >= 0.
*/
double gaussian_rate_beside(double epsilon, double delta, double slack);

/*
** The slack that a budget sets aside when a release costs `rate`. It is the larger of two amounts:
** the slack of all releases that fit, with one coordinate each; and the slack that lowers the
** budget's rate by one part in 2^43. Then k releases of rate gaussian_rate_beside(epsilon, delta, k
** GAUSSIAN_DRAW_SLACK)/k fit, if each is rounded down by published_down() (rounding.h). NaN if
** delta leaves no room for slack.
*/
double gaussian_slack_beside(double epsilon, double delta, double rate);

#endif
