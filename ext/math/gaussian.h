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
** was measured against 70 digits. One result cannot be that good: an epsilon below mu/500 says
** that delta is next to gaussian_delta(rate, 0), and its absolute error is then up to 2e-15 mu.
** They return the nearest value they can; rounding in the direction of privacy is rounding.h's
** business.
*/
#ifndef DIFFUSE_MATH_GAUSSIAN_H
#define DIFFUSE_MATH_GAUSSIAN_H

#include <stdint.h>

/* Least delta at which `rate` is (epsilon, delta)-DP. rate >= 0, epsilon >= 0 (infinity: 0). */
double gaussian_delta(double rate, double epsilon);

/* Its natural logarithm, also where delta itself would underflow; -infinity for delta = 0. */
double gaussian_log_delta(double rate, double epsilon);

/* Least epsilon >= 0 at which `rate` is (epsilon, delta)-DP. rate >= 0, 0 < delta < 1. */
double gaussian_epsilon(double rate, double delta);

/* Largest rate that is (epsilon, delta)-DP. epsilon >= 0, 0 < delta < 1. */
double gaussian_rate(double epsilon, double delta);

/*
** Upper bound on the total variation distance between one coordinate of discrete Gaussian noise of
** integer variance `variance` and the rounded continuous Gaussian of variance `variance` - 1/12:
** 0.0035 (1 + 1.12/s)/s^4 + 1.1 exp(-2 pi^2 variance), s^2 = variance - 1/12. What the
** exact-Gaussian accountant pays, times (1 + e^epsilon), for each coordinate drawn.
** variance >= 2^20.
*/
double gaussian_lattice_slack(uint64_t variance);

/*
** The most that one coordinate of a release costs, in slack: its variance is at least 2^40, as
** design_make() chooses it. A little more, so that a sum of a million may be rounded up at each
** addition.
*/
#define GAUSSIAN_DRAW_SLACK (0.0035 * 0x1p-80 * (1.0 + 0x1p-18))

/*
** Largest rate that is (epsilon, delta)-DP beside a total lattice slack: gaussian_rate() at
** delta - (1 + e^epsilon) slack. NaN where the slack takes half of delta or more. slack >= 0.
*/
double gaussian_rate_beside(double epsilon, double delta, double slack);

/*
** The slack that a budget sets aside when a release costs `rate`: what all releases that fit draw,
** one coordinate each; or, where that is more, as much as lowers the budget's rate by 2^-43. Then
** k releases of rate gaussian_rate_beside(epsilon, delta, k GAUSSIAN_DRAW_SLACK)/k fit, if each is
** rounded down by published_down() (rounding.h). NaN where delta cannot bear any slack.
*/
double gaussian_slack_beside(double epsilon, double delta, double rate);

#endif
