/*
** gdp.c: the accountant 'gdp', a Gaussian filter (Smith and Thakurta 2022; Koskela, Tobaben and
** Honkela 2022) on the total rate. This accountant covers Gaussian and Ornstein-Uhlenbeck releases.
**
** The noise is a discrete Gaussian. Its total variation distance from a rounded continuous Gaussian
** is at most `slack`. For this difference, the accountant sets aside the amount (1 + e^epsilon)
** slack out of delta.
** Tests: tests/ledger/test_filters.py
*/
#include <math.h>

#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "math/cost.h"
#include "math/gaussian.h"

SQLITE_EXTENSION_INIT3

static int reserve_slack(struct ledger_tier *tier) {
  tier->slack_limit =
      gaussian_slack_beside(tier->epsilon, tier->delta - tier->delta_keys, tier->rate);
  return tier->slack_limit >= GAUSSIAN_DRAW_SLACK;
}

static double draws_left(const struct ledger_tier *tier, const struct budget *budget) {
  return floor((tier->slack_limit - budget->slack) / gaussian_lattice_slack((uint64_t)1 << 40));
}

static int set_limit(struct ledger_tier *tier) {
  tier->filter_order = tier->pure_limit = NAN;
  tier->rate_limit =
      gaussian_rate_beside(tier->epsilon, tier->delta - tier->delta_keys, tier->slack_limit);
  tier->rate_limit = ACCOUNTANT_BELOW(tier->rate_limit);
  return tier->rate_limit > 0;
}

/*
** This accountant does not cover releases that cost a curve, so the total of a budget with a curve
** is infinite.
*/
static struct total total(const struct ledger_tier *tier, const struct budget *budget) {
  (void)tier;
  return budget->curve > 0 ? (struct total){INFINITY, 0} : budget->rate;
}

static int refuse(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct budget *before, const struct budget *after,
                  const struct payment *payment) {
  if (after->slack <= tier->slack_limit)
    return ledger_fail_budget(ledger, tier, total_up(payment->rate),
                              total_left(before->rate, tier->rate_limit));
  /* Advice: Very many numbers, or a tier between two others. Take fewer groups, or the
     accountant `'rdp'` in a new ledger. */
  return ledger_fail(ledger,
                     "tier '%s' would exceed the lattice slack of its exact-Gaussian budget: "
                     "this needs %g, and %g is left (nothing was charged or read)",
                     tier->name, payment->slack, tier->slack_limit - before->slack);
}

static double epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  double reserved = tier->slack_limit > 0 ? tier->slack_limit * (1 + exp(tier->epsilon)) : 0;
  double delta = tier->delta - tier->delta_keys - reserved;
  if (!(delta > 0) || curve) return INFINITY;
  return rate == 0 ? 0 : published_up(gaussian_epsilon(rate, delta));
}

static double allowed(const struct ledger_tier *tier, double alpha) {
  return renyi_allowed(alpha, tier->epsilon, tier->delta - tier->delta_keys);
}

/*
** The filters of all periods together act as one filter on the sum of the rates. The function sets
** aside a fraction 2^-20 of the total delta of all periods for the lattice slack of these periods.
*/
static double composed(const struct ledger_tier *tier, double count) {
  double delta = count * (tier->delta - tier->delta_keys), spare = delta * 0x1p-20;
  double epsilon = published_up(gaussian_epsilon(count * tier->rate_limit, delta - spare));
  return (1 + exp(epsilon)) * count * tier->slack_limit <= spare ? epsilon : NAN;
}

static double same(double rate) {
  return rate;
}

/*
** At order infinity the cost of Gaussian noise is infinite. The function then returns the tier's
** epsilon, as for the accountant 'rdp'.
*/
static double most_at(const struct ledger_tier *tier, double order) {
  return isinf(order) ? tier->epsilon : tier->rate_limit;
}

const struct accountant accountant_gdp = {
    .name = "gdp",
    .title = "exact Gaussian accounting",
    .theorem = "Gaussian filter (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2022); "
               "profile of Balle and Wang 2018, Theorem 8, with slack (1 + e^epsilon) for the "
               "lattice",
    .has_delta = 1,
    .covers_rates = 1,
    .refusal = "has exact Gaussian accounting, and the release is not Gaussian (tiers with the "
               "accountant 'rdp' admit it; instead of 'choice', ask 'group_count' with the "
               "candidates as \"keys\"; nothing was charged or read)",
    .reserve_slack = reserve_slack,
    .draws_left = draws_left,
    .set_limit = set_limit,
    .total = total,
    .refuse = refuse,
    .epsilon = epsilon,
    .allowed = allowed,
    .composed = composed,
    .cost_of_rate = same,
    .rate_of_cost = same,
    .least_part = 1 - 0x1p-39, /* variances are integers of at least 2^40 */
    .most_at = most_at,
};
