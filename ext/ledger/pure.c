/*
** pure.c: the accountant 'pure', which adds up the epsilons of pure differential privacy. This
** accountant covers releases whose RDP curve is finite at order infinity. The value of the curve at
** order infinity is the epsilon.
** Tests: tests/ledger/test_pure.py, tests/ledger/test_releases_left.py
*/
#include <math.h>

#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "math/pure_mechanisms.h"

SQLITE_EXTENSION_INIT3

static int set_limit(struct ledger_tier *tier) {
  tier->filter_order = INFINITY;
  tier->rate_limit = tier->epsilon;
  tier->pure_limit = NAN;
  return 1;
}

/*
** The RDP of a positive rate is infinite at order infinity, so the total of a budget with a rate is
** infinite.
*/
static struct total total(const struct ledger_tier *tier, const struct budget *budget) {
  (void)tier;
  return (struct total){budget->rate.high > 0 ? INFINITY : budget->curve, 0};
}

static int refuse(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct budget *before, const struct budget *after,
                  const struct payment *payment) {
  (void)after;
  return ledger_fail_epsilon(ledger, tier, payment->curve.values[AT_INFINITY],
                             tier->rate_limit - before->pure);
}

static double epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  (void)tier;
  return rate > 0 ? INFINITY : curve ? curve[RENYI_ORDERS - 1] : 0;
}

/*
** At a finite order no amount is allowed, because no finite order can certify a budget whose delta
** is 0.
*/
static double allowed(const struct ledger_tier *tier, double alpha) {
  return isinf(alpha) ? tier->epsilon : -INFINITY;
}

/*
** Returns the most that a release of this rate costs: a little less than the epsilon z of
** continuous Laplace noise with this rate, so that as many releases fit into a budget as it has
** multiples of z, however the rate was rounded. Discrete Laplace noise costs less than
** (1 - 2^-34) z: its scale is below 2^31, and mechanism.c raises its rate by more than 2^-32 of
** itself, which lowers z by at least half of this. A draw of a leaf or a category takes what this
** function returns.
*/
static double epsilon_of_rate(double rate) {
  return laplace_distance(rate) * (1 - 0x1p-36);
}

static double rate_of_epsilon(double epsilon) {
  return epsilon + expm1(-epsilon);
}

/*
** Of all mechanisms with the same epsilon, randomized response has the largest RDP at each finite
** order.
*/
static double most_at(const struct ledger_tier *tier, double order) {
  return isinf(order) ? tier->epsilon : response_rdp(order, tier->epsilon) / order;
}

const struct accountant accountant_pure = {
    .name = "pure",
    .title = "pure differential privacy",
    .theorem = "pure differential privacy: epsilons add up, also of releases chosen adaptively "
               "(Dwork, McSherry, Nissim and Smith 2006; Rogers, Roth, Ullman and Vadhan 2016)",
    .covers_curves = 1,
    .covers_diffused_models = 1,
    .refusal = "has a budget of pure differential privacy, and the release has Gaussian noise (ask "
               "for \"mechanism\":\"laplace\"; nothing was charged or read)",
    .set_limit = set_limit,
    .total = total,
    .refuse = refuse,
    .epsilon = epsilon,
    .allowed = allowed,
    .cost_of_rate = epsilon_of_rate,
    .rate_of_cost = rate_of_epsilon,
    .least_part = 1 - 0x1p-19, /* scales are integers of at least 2^19 */
    .most_at = most_at,
};
