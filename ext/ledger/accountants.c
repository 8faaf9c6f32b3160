/* accountants.c: the three accountants and their table. Each is a struct of functions
** (accountant.h) that decides when the budget of a tier is spent.
** Tests: tests/ledger/test_two_orders.py, tests/ledger/test_filters.py,
** tests/ledger/test_curves.py, tests/ledger/test_pure.py, tests/ledger/test_releases_left.py,
** tests/ledger/test_periods.py */
#include "ledger/accountant.h"

#include <math.h>
#include <string.h>

#include "ledger/internal.h"
#include "math/math.h"

SQLITE_EXTENSION_INIT3

/* ---- what accountants share ------------------------------------------------------------------ */

static const char *after_this(const struct ledger_tier *tier) {
  return tier->period ? "wait for the next period" : "without a period, nothing comes back";
}

static int fail_budget(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                       double left) {
  /* Advice: Or take a smaller `weight`; `dp_plan` shows what fits. A tier inside yours sees your
     release, and pays too. What grants have set aside is not left. */
  return ledger_fail(ledger,
                     "tier '%s' would exceed its budget of epsilon %g at delta %g: this needs "
                     "rate %g, and %g of %g is left (nothing was charged or read; %s)",
                     tier->name, tier->epsilon, tier->delta, needed, fmax(0, left),
                     tier->rate_limit, after_this(tier));
}

static int fail_epsilon(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                        double left) {
  return ledger_fail(ledger,
                     "tier '%s' would exceed its budget of epsilon %g: this needs %g, and %g is "
                     "left (nothing was charged or read; %s)",
                     tier->name, tier->epsilon, needed, fmax(0, left), after_this(tier));
}

static double noise_delta(const struct ledger_tier *tier) {
  return tier->delta - tier->delta_keys;
}

/* Lowers a limit by more than the relative errors of math/, which are about 1e-14 (math/math.h). */
static double below(double limit) {
  return limit * (1 - 0x1p-46);
}

static double allowed_of_rates(const struct ledger_tier *tier, double alpha) {
  return renyi_allowed(alpha, tier->epsilon, noise_delta(tier));
}

static double same(double rate) {
  return rate;
}

/* The cost at order infinity is infinite for Gaussian noise, and not bounded by an RDP budget. The
** tier's epsilon makes a pure inner tier have at least this epsilon. */
static double most_of_rates(const struct ledger_tier *tier, double order) {
  return isinf(order) ? tier->epsilon : tier->rate_limit;
}

/* ---- 'rdp' ----------------------------------------------------------------------------------- */

/* A Renyi filter at two orders (Feldman and Zrnic 2021), which covers every release. The first
** order allows the largest total zCDP rate, so it is the best one if every release costs a rate; an
** RDP curve counts as the rate that has the same RDP at this order. The second order is infinity,
** where epsilons add up. A release is admitted if one of the two totals stays within its limit.
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
** k times the limit at this order (rdp_composed()). With order infinity, they would only be k
** epsilons. */
static int rdp_set_limit(struct ledger_tier *tier) {
  tier->rate_limit = zcdp_rate(tier->epsilon, noise_delta(tier), &tier->filter_order);
  tier->rate_limit = below(tier->rate_limit);
  tier->pure_limit = tier->period ? NAN : tier->epsilon;
  return tier->rate_limit > 0;
}

static struct total rdp_total(const struct ledger_tier *tier, const struct budget *budget) {
  if (!(budget->curve > 0)) return budget->rate;
  return total_add(budget->rate, nextafter(budget->curve / tier->filter_order, INFINITY));
}

static int rdp_refuse(struct ledger *ledger, const struct ledger_tier *tier,
                      const struct budget *before, const struct budget *after,
                      const struct payment *payment) {
  if (after->pure < INFINITY && before->pure < tier->pure_limit)
    return fail_epsilon(ledger, tier, payment->curve.values[AT_INFINITY],
                        tier->pure_limit - before->pure);
  double share = 1 / tier->filter_order;
  double curve = payment->curve.any ? payment->curve.values[AT_FILTER] * share : 0;
  return fail_budget(ledger, tier, total_up(payment->rate) + curve,
                     total_left(before->rate, tier->rate_limit) - before->curve * share);
}

static double rdp_epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  double delta = noise_delta(tier);
  if (!(delta > 0)) return INFINITY;
  if (rate == 0 && !curve) return 0;
  return published_up(curve ? renyi_epsilon(rate, curve, delta) : zcdp_epsilon(rate, delta));
}

/* The filters of all periods together act as one filter at the same finite order. */
static double rdp_composed(const struct ledger_tier *tier, double count) {
  double alpha = tier->filter_order, delta = count * noise_delta(tier);
  return published_up(count * alpha * tier->rate_limit + log1p(-1 / alpha) -
                      (log(delta) + log(alpha)) / (alpha - 1));
}

static const struct accountant rdp = {
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
    .set_limit = rdp_set_limit,
    .total = rdp_total,
    .refuse = rdp_refuse,
    .epsilon = rdp_epsilon,
    .allowed = allowed_of_rates,
    .composed = rdp_composed,
    .cost_of_rate = same,
    .rate_of_cost = same,
    .least_part = 1 - 0x1p-39, /* variances are integers of at least 2^40 */
    .most_at = most_of_rates,
};

/* ---- 'gdp' ----------------------------------------------------------------------------------- */

/* A Gaussian filter (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2022) on the total rate,
** for Gaussian and Ornstein-Uhlenbeck releases. The noise is a discrete Gaussian, whose total
** variation distance from a rounded continuous one is at most `slack`. For this difference the
** accountant sets aside (1 + e^epsilon) slack out of delta. */
static int gdp_reserve_slack(struct ledger_tier *tier) {
  tier->slack_limit = gaussian_slack_beside(tier->epsilon, noise_delta(tier), tier->rate);
  return tier->slack_limit >= GAUSSIAN_DRAW_SLACK;
}

static double gdp_draws_left(const struct ledger_tier *tier, const struct budget *budget) {
  return floor((tier->slack_limit - budget->slack) / gaussian_lattice_slack((uint64_t)1 << 40));
}

static int gdp_set_limit(struct ledger_tier *tier) {
  tier->filter_order = tier->pure_limit = NAN;
  tier->rate_limit = gaussian_rate_beside(tier->epsilon, noise_delta(tier), tier->slack_limit);
  tier->rate_limit = below(tier->rate_limit);
  return tier->rate_limit > 0;
}

static struct total gdp_total(const struct ledger_tier *tier, const struct budget *budget) {
  (void)tier;
  return budget->curve > 0 ? (struct total){INFINITY, 0} : budget->rate;
}

static int gdp_refuse(struct ledger *ledger, const struct ledger_tier *tier,
                      const struct budget *before, const struct budget *after,
                      const struct payment *payment) {
  if (after->slack <= tier->slack_limit)
    return fail_budget(ledger, tier, total_up(payment->rate),
                       total_left(before->rate, tier->rate_limit));
  /* Advice: Very many numbers, or a tier between two others. Take fewer groups, or the
     accountant `'rdp'` in a new ledger. */
  return ledger_fail(ledger,
                     "tier '%s' would exceed the lattice slack of its exact-Gaussian budget: "
                     "this needs %g, and %g is left (nothing was charged or read)",
                     tier->name, payment->slack, tier->slack_limit - before->slack);
}

static double gdp_epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  double reserved = tier->slack_limit > 0 ? tier->slack_limit * (1 + exp(tier->epsilon)) : 0;
  double delta = noise_delta(tier) - reserved;
  if (!(delta > 0) || curve) return INFINITY;
  return rate == 0 ? 0 : published_up(gaussian_epsilon(rate, delta));
}

/* The filters of all periods together act as one filter on the sum of the rates. A part 2^-20 of
** their total delta is set aside for their lattice slack. */
static double gdp_composed(const struct ledger_tier *tier, double count) {
  double delta = count * noise_delta(tier), spare = delta * 0x1p-20;
  double epsilon = published_up(gaussian_epsilon(count * tier->rate_limit, delta - spare));
  return (1 + exp(epsilon)) * count * tier->slack_limit <= spare ? epsilon : NAN;
}

static const struct accountant gdp = {
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
    .reserve_slack = gdp_reserve_slack,
    .draws_left = gdp_draws_left,
    .set_limit = gdp_set_limit,
    .total = gdp_total,
    .refuse = gdp_refuse,
    .epsilon = gdp_epsilon,
    .allowed = allowed_of_rates,
    .composed = gdp_composed,
    .cost_of_rate = same,
    .rate_of_cost = same,
    .least_part = 1 - 0x1p-39, /* variances are integers of at least 2^40 */
    .most_at = most_of_rates,
};

/* ---- 'pure' ---------------------------------------------------------------------------------- */

/* Epsilons add up. The epsilon of a release is the value of its RDP curve at order infinity. */
static int pure_set_limit(struct ledger_tier *tier) {
  tier->filter_order = INFINITY;
  tier->rate_limit = tier->epsilon;
  tier->pure_limit = NAN;
  return 1;
}

/* The RDP of a positive rate is infinite at order infinity. */
static struct total pure_total(const struct ledger_tier *tier, const struct budget *budget) {
  (void)tier;
  return (struct total){budget->rate.high > 0 ? INFINITY : budget->curve, 0};
}

static int pure_refuse(struct ledger *ledger, const struct ledger_tier *tier,
                       const struct budget *before, const struct budget *after,
                       const struct payment *payment) {
  (void)after;
  return fail_epsilon(ledger, tier, payment->curve.values[AT_INFINITY],
                      tier->rate_limit - before->pure);
}

static double pure_epsilon(const struct ledger_tier *tier, double rate, const double *curve) {
  (void)tier;
  return rate > 0 ? INFINITY : curve ? curve[RENYI_ORDERS - 1] : 0;
}

/* No finite order can certify a budget whose delta is 0. */
static double pure_allowed(const struct ledger_tier *tier, double alpha) {
  return isinf(alpha) ? tier->epsilon : -INFINITY;
}

/* Returns the most that a release of this rate costs: a little less than the epsilon z of
** continuous Laplace noise with this rate, so that as many releases fit into a budget as it has
** multiples of z, however the rate was rounded. Discrete Laplace noise costs less than
** (1 - 2^-34) z: its scale is below 2^31, and mechanism.c raises its rate by more than 2^-32 of
** itself, which lowers z by at least half of this. A draw of a leaf or a category takes what this
** function returns. */
static double epsilon_of_rate(double rate) {
  return laplace_distance(rate) * (1 - 0x1p-36);
}

static double rate_of_epsilon(double epsilon) {
  return epsilon + expm1(-epsilon);
}

/* Of all mechanisms with this epsilon, randomized response has the largest RDP at each order. */
static double pure_most_at(const struct ledger_tier *tier, double order) {
  return isinf(order) ? tier->epsilon : response_rdp(order, tier->epsilon) / order;
}

static const struct accountant pure = {
    .name = "pure",
    .title = "pure differential privacy",
    .theorem = "pure differential privacy: epsilons add up, also of releases chosen adaptively "
               "(Dwork, McSherry, Nissim and Smith 2006; Rogers, Roth, Ullman and Vadhan 2016)",
    .covers_curves = 1,
    .covers_diffused_models = 1,
    .refusal = "has a budget of pure differential privacy, and the release has Gaussian noise (ask "
               "for \"mechanism\":\"laplace\"; nothing was charged or read)",
    .set_limit = pure_set_limit,
    .total = pure_total,
    .refuse = pure_refuse,
    .epsilon = pure_epsilon,
    .allowed = pure_allowed,
    .cost_of_rate = epsilon_of_rate,
    .rate_of_cost = rate_of_epsilon,
    .least_part = 1 - 0x1p-19, /* scales are integers of at least 2^19 */
    .most_at = pure_most_at,
};

/* ---- the accountants ------------------------------------------------------------------------- */

const struct accountant *const accountants[] = {&rdp, &gdp, &pure, 0};

const struct accountant *accountant_find(const char *name) {
  const struct accountant *const *at = accountants;
  while (name && *at && strcmp((*at)->name, name) != 0) at++;
  return *at;
}

char *accountant_names(void) {
  sqlite3_str *names = sqlite3_str_new(0);
  for (int i = 0; accountants[i]; i++)
    sqlite3_str_appendf(names, "%s'%s'",
                        !i                   ? ""
                        : accountants[i + 1] ? ", "
                                             : " or ",
                        accountants[i]->name);
  return sqlite3_str_finish(names);
}
