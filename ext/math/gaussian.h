/* gaussian.h: the exact privacy profile of the Gaussian mechanism.
**
** Let mu = sqrt(2 rate) = sensitivity/sigma. A Gaussian mechanism of zCDP rate `rate` is (epsilon,
** delta)-DP if and only if delta >= gaussian_delta(rate, epsilon) (Balle and Wang 2018, Theorem 8;
** Balle et al. 2019, section 5; Asoodeh et al. 2020, Lemma 2: theta_{e^epsilon}(mu)). The rates of
** adaptively chosen releases add up.
**
** Arguments are finite, unless a comment allows infinity. The functions return NaN outside the
** stated domain. The relative error is at most 1e-12 wherever the result is a normal double (for
** rates from 1e-12 to 1e6 and delta down to 1e-300); a computation in 70 digits showed 1e-14. An
** epsilon below mu/500 is less accurate, because delta is then close to gaussian_delta(rate, 0):
** its absolute error is up to 2e-15 mu. The functions round to nearest; those of cost.h round in
** the direction of privacy. */
#ifndef DIFFUSE_MATH_GAUSSIAN_H
#define DIFFUSE_MATH_GAUSSIAN_H

#include <stdint.h>

/* gaussian_delta() returns the least delta for which a Gaussian mechanism of this rate >= 0 is
** (epsilon, delta)-DP, and 0 for an infinite epsilon. gaussian_log_delta() returns its natural
** logarithm, even where delta would underflow. gaussian_epsilon() returns the least epsilon >= 0
** for a delta, and gaussian_rate() the largest rate. epsilon >= 0, 0 < delta < 1. */
double gaussian_delta(double rate, double epsilon);
double gaussian_log_delta(double rate, double epsilon);
double gaussian_epsilon(double rate, double delta);
double gaussian_rate(double epsilon, double delta);

/* Returns the lattice slack: an upper bound on the total variation distance between a discrete
** Gaussian of this integer variance >= 2^20 and a rounded continuous Gaussian of variance s^2 =
** variance - 1/12: 0.0035 (1 + 1.12/s)/s^4 + 1.1 exp(-2 pi^2 variance). For each coordinate drawn,
** the exact Gaussian accountant (ledger/) pays this slack times (1 + e^epsilon) out of delta. */
double gaussian_lattice_slack(uint64_t variance);

/* The largest lattice slack of one coordinate of a release: slightly more than that at variance
** 2^40, the least that design_make() chooses. The ledger rounds up whenever it adds slack, and this
** margin is enough for a million additions. */
#define GAUSSIAN_DRAW_SLACK (0.0035 * 0x1p-80 * (1.0 + 0x1p-18))

/* Returns the largest rate that fits into a budget of (epsilon, delta) together with a total
** lattice slack >= 0: gaussian_rate() at delta - (1 + e^epsilon) slack. NaN if this takes half of
** delta or more. */
double gaussian_rate_beside(double epsilon, double delta, double slack);

/* Returns the lattice slack that a budget of (epsilon, delta) sets aside if each release costs
** `rate`: the larger of the slack of all such releases that fit into the budget, with one
** coordinate each, and of the slack that lowers the largest rate of the budget by one part in 2^43.
** The latter guarantees that k releases fit into the budget if `rate` is R/k, rounded down by
** published_down(), with R = gaussian_rate_beside(epsilon, delta, k * GAUSSIAN_DRAW_SLACK). NaN if
** delta leaves no room for slack. */
double gaussian_slack_beside(double epsilon, double delta, double rate);

#endif
