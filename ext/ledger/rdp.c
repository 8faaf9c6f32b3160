/*
** rdp.c: the accountant 'rdp', a Renyi filter at two orders (Feldman and Zrnic 2021). The first
** order is the one that allows the largest total zCDP rate, so it is the best order if the cost of
** every release is a rate and not a curve. A release whose cost is an RDP curve counts as the rate
** that has the same RDP at this order. The second order is infinity, where epsilons add up. A
** release is admitted if one of the two totals stays within its limit. This accountant covers every
** release.
**
** Why one of the two is enough. Let O be the set of outcomes that end with the first total within
** its limit. There the mechanism agrees with one that stops before this total exceeds its limit,
** and all other outcomes agree with one that stops before the sum of epsilons exceeds epsilon. So
**     Pr[S] = Pr[S and O] + Pr[S and not O] <= (e^epsilon Pr'[S and O] + delta)
**                                              + e^epsilon Pr'[S and not O],
** because order infinity needs no delta. A third order would need a part of delta
** (ext/math/README.md).
**
** In a tier with periods the first order counts alone. The budgets of k periods are one filter with
** k times the limit at this order (composed()). With order infinity, they would only be k epsilons.
**
** Tests: tests/ledger/test_two_orders.py, test_filters.py, test_curves.py
*/
#include <math.h>

#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "math/cost.h"

SQLITE_EXTENSION_INIT3

static double noise_delta(const struct ledger_tier *tier) {
  return tier->delta - tier->delta_keys;
}

static int set_limit(struct ledger_tier *tier) {
  tier->rate_limit = zcdp_rate(tier->epsilon, noise_delta(tier), &tier->filter_order);
  tier->rate_limit = ACCOUNTANT_BELOW(tier->rate_limit);
  tier->pure_limit = tier->period ? NAN : tier->epsilon;
  return tier->rate_limit > 0;
}

static struct total total(const struct ledger_tier *tier, const struct budget *budget) {
  if (!(budget->curve > 0)) return budget->rate;
  return total_add(budget->rate, nextafter(budget->curve / tier->filter_order, INFINITY));
}

static int refuse(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct budget *before, const struct budget *after,
                  const struct payment *payment) {
  if (after->pure < INFINITY && before->pure < tier->pure_limit)
    return ledger_fail_epsilon(ledger, tier, payment->curve.values[AT_INFINITY],
                               tier->pure_limit - before->pure);
  double share = 1 / tier->filter_order;
  double curve = payment->curve.any ? payment->curve.values[AT_FILTER] * share : 0;
  return ledger_fail_budget(ledger, tier, total_up(payment->rate) + curve,
                            total_left(before->rate, tier->rate_limit) - before->curve * share);
}

static double epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  double delta = noise_delta(tier);
  if (!(delta > 0)) return INFINITY;
  if (rate == 0 && !curve) return 0;
  return published_up(curve ? renyi_epsilon(rate, curve, delta) : zcdp_epsilon(rate, delta));
}

static double allowed(const struct ledger_tier *tier, double alpha) {
  return renyi_allowed(alpha, tier->epsilon, noise_delta(tier));
}

/* The filters of all periods together act as one filter at the same finite order. */
static double composed(const struct ledger_tier *tier, double count) {
  double alpha = tier->filter_order, delta = count * noise_delta(tier);
  return published_up(count * alpha * tier->rate_limit + log1p(-1 / alpha) -
                      (log(delta) + log(alpha)) / (alpha - 1));
}

static double same(double rate) {
  return rate;
}

/*
** An RDP budget does not bound the cost at order infinity. The function then returns the tier's
** epsilon, so a pure inner tier needs at least this epsilon.
*/
static double most_at(const struct ledger_tier *tier, double order) {
  return isinf(order) ? tier->epsilon : tier->rate_limit;
}

const struct accountant accountant_rdp = {
    .name = "rdp",
    .title = "RDP accounting",
    .theorem =
        "Renyi filter at filter_order, or at order infinity up to pure_limit (Feldman and Zrnic "
        "2021); conversion of Balle et al. 2020, Theorem 21, and Canonne, Kamath and Steinke 2020, "
        "Proposition 12",
    .has_delta = 1,
    .covers_rates = 1,
    .covers_curves = 1,
    .covers_diffused_models = 1,
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
