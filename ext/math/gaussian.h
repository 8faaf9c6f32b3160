/*
** gaussian.h: the exact privacy profile of the Gaussian mechanism.
**
** Let mu = sqrt(2 rate) = sensitivity/sigma. A Gaussian mechanism of zCDP rate `rate` is (epsilon,
** delta)-DP if and only if delta >= gaussian_delta(rate, epsilon) (Balle and Wang 2018, Theorem 8;
** Balle et al. 2019, section 5; Asoodeh et al. 2020, Lemma 2: theta_{e^epsilon}(mu)). The rates of
** adaptively chosen releases add up.
**
** All functions take finite arguments, unless a comment allows infinity. All functions return NaN
** for an argument outside the stated domain. The relative error is at most 1e-12 wherever the
** result is a normal double (for rates from 1e-12 to 1e6 and delta down to 1e-300). A comparison
** with a computation in 70 digits showed relative errors of at most 1e-14. The epsilon of
** gaussian_epsilon() is less accurate if it is below mu/500, because delta is then close to
** gaussian_delta(rate, 0). Its absolute error is then up to 2e-15 mu. The functions round to
** nearest. The functions of cost.h round in the direction of privacy.
*/
#ifndef DIFFUSE_MATH_GAUSSIAN_H
#define DIFFUSE_MATH_GAUSSIAN_H

#include <stdint.h>

/*
** Returns the least delta for which a Gaussian mechanism of this rate is (epsilon, delta)-DP. rate
** >= 0, epsilon >= 0. For an infinite epsilon the result is 0.
*/
double gaussian_delta(double rate, double epsilon);

/*
** Returns the natural logarithm of gaussian_delta(), even where delta itself would underflow.
** Returns -infinity if delta is exactly 0.
*/
double gaussian_log_delta(double rate, double epsilon);

/*
** Returns the least epsilon >= 0 for which a Gaussian mechanism of this rate is (epsilon,
** delta)-DP. rate >= 0, 0 < delta < 1.
*/
double gaussian_epsilon(double rate, double delta);

/*
** Returns the largest rate at which a Gaussian mechanism is (epsilon, delta)-DP. epsilon >= 0, 0 <
** delta < 1.
*/
double gaussian_rate(double epsilon, double delta);

/*
** Returns the lattice slack: an upper bound on the total variation distance between a discrete
** Gaussian of integer variance `variance` and a rounded continuous Gaussian of variance s^2 =
** variance - 1/12. The bound is 0.0035 (1 + 1.12/s)/s^4 + 1.1 exp(-2 pi^2 variance). For each
** coordinate drawn, the exact Gaussian accountant (ledger/gdp.c) pays this slack times (1 +
** e^epsilon) out of delta. variance >= 2^20.
*/
double gaussian_lattice_slack(uint64_t variance);

/*
** The largest lattice slack that one coordinate of a release can cost: the slack at variance 2^40,
** the least variance that design_make() chooses. The constant is slightly larger than
** gaussian_lattice_slack(2^40). The ledger rounds up whenever it adds slack, and this margin is
** enough for a million additions.
*/
#define GAUSSIAN_DRAW_SLACK (0.0035 * 0x1p-80 * (1.0 + 0x1p-18))

/*
** Returns the largest rate that fits into a budget of (epsilon, delta) together with a total
** lattice slack of `slack`. The result is gaussian_rate() at delta - (1 + e^epsilon) slack. Returns
** NaN if the slack takes half of delta or more. slack >= 0.
*/
double gaussian_rate_beside(double epsilon, double delta, double slack);

/*
** Returns the lattice slack that a budget of (epsilon, delta) sets aside if each release costs
** `rate`. The result is the larger of two amounts. The first amount is the slack of all releases of
** this rate that fit into the budget, with one coordinate each. The second amount is the slack that
** lowers the largest rate of the budget by one part in 2^43. The second amount guarantees that k
** releases fit into the budget if `rate` is R/k, rounded down by published_down() (cost.h).
** Here R is gaussian_rate_beside(epsilon, delta, k * GAUSSIAN_DRAW_SLACK). Returns NaN if delta
** leaves no room for slack.
*/
double gaussian_slack_beside(double epsilon, double delta, double rate);

#endif
