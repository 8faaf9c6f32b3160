/* budget.c: what a tier may spend and what it has spent: RDP curves, the three accountants, the
** rows of tiers (tier.c creates and drops them), the totals of their current periods (dp_budget,
** dp_order), and the periods. grant.c says what grants have reserved of a budget.
** Tests: tests/ledger/test_filters.py, tests/ledger/test_two_orders.py,
** tests/ledger/test_curves.py, tests/ledger/test_pure.py, tests/ledger/test_releases_left.py,
** tests/ledger/test_tiers.py, tests/ledger/test_periods.py,
** tests/functions/test_plan_values.py */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- RDP curves ------------------------------------------------------------------------------ */

/* The ledger stores a curve as a blob of 115 little-endian doubles: the values at the 114 stored
** orders, followed by the value at the filter order. */

struct curve curve_of(const struct cost *cost, double filter_order) {
  struct curve curve;
  curve.any = cost->curve != 0;
  for (int i = 0; curve.any && i < CURVE_SIZE; i++) {
    double alpha = i < RENYI_ORDERS ? renyi_order(i) : filter_order;
    curve.values[i] = isnan(alpha) ? 0 : published_up(cost->curve(cost->parameters, alpha));
  }
  return curve;
}

struct curve curve_missing(const struct curve *cost, const struct curve *paid) {
  struct curve missing = {0, {0}};
  for (int i = 0; cost->any && i < CURVE_SIZE; i++) {
    double before = paid->any ? paid->values[i] : 0;
    /* If the paid curve is infinite at an order, nothing is left to pay at this order. */
    missing.values[i] =
        cost->values[i] > before ? total_missing((struct total){before, 0}, cost->values[i]) : 0;
    missing.any |= missing.values[i] > 0;
  }
  return missing;
}

void curve_add(struct curve *sum, const struct curve *term) {
  if (!term->any) return;
  for (int i = 0; i < CURVE_SIZE; i++) {
    double before = sum->any ? sum->values[i] : 0;
    sum->values[i] = before + term->values[i];
    /* The sum is exact if one term is 0. Otherwise it is raised by one unit in the last place. */
    if (before > 0 && term->values[i] > 0) sum->values[i] = nextafter(sum->values[i], INFINITY);
  }
  sum->any = 1;
}

struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]) {
  if (!curve->any) return (struct bytes){0, 0};
  for (int i = 0; i < CURVE_SIZE; i++) {
    uint64_t bits;
    memcpy(&bits, &curve->values[i], sizeof bits);
    for (int j = 0; j < 8; j++) bytes[8 * i + j] = (unsigned char)(bits >> (8 * j));
  }
  return (struct bytes){bytes, CURVE_BYTES};
}

struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored) {
  struct curve curve;
  const unsigned char *bytes = stored.at;
  curve.any = bytes != 0;
  if (!curve.any) return curve;
  if (stored.size != CURVE_BYTES) {
    ledger_fail_damaged(ledger, "a curve in dp_charge or dp_publication");
    curve.any = 0;
    return curve;
  }
  for (int i = 0; i < CURVE_SIZE; i++) {
    curve.values[i] = binary64(bytes + 8 * (size_t)i);
    if (!(curve.values[i] >= 0))
      ledger_fail_damaged(ledger, "a curve in dp_charge or dp_publication");
  }
  return curve;
}

struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column) {
  return curve_of_bytes(ledger, column_bytes(row, column));
}

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

/* ---- the tiers ------------------------------------------------------------------------------- */

void ledger_tiers_free(struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    sqlite3_free(tiers[i].name);
    sqlite3_free(tiers[i].period);
  }
  sqlite3_free(tiers);
}

int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count) {
  *tiers = 0;
  *count = 0;
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT name, rate, epsilon, delta, delta_keys, accountant,"
                                     " filter_order, rate_limit, pure_limit, slack_limit, period"
                                     " FROM dp_tier ORDER BY rate DESC",
                                     "");
  while (statement_row(ledger, row)) {
    if (!ledger_make_room(ledger, tiers, *count, sizeof **tiers)) break;
    struct ledger_tier *tier = &(*tiers)[(*count)++];
    *tier = (struct ledger_tier){.name = column_copy(ledger, row, 0),
                                 .rate = column_number(row, 1),
                                 .epsilon = column_number(row, 2),
                                 .delta = column_number(row, 3),
                                 .delta_keys = column_number(row, 4),
                                 .accountant = accountant_find(column_text(ledger, row, 5)),
                                 .filter_order = column_number(row, 6),
                                 .rate_limit = column_number(row, 7),
                                 .pure_limit = column_number(row, 8),
                                 .slack_limit = column_number(row, 9),
                                 .period = column_copy(ledger, row, 10)};
    /* If the name is unknown, somebody has edited the file. dp_verify() reports this. */
    if (!tier->accountant) tier->accountant = accountants[0];
    if (isnan(tier->filter_order)) tier->filter_order = 0; /* curves do not count */
    if (!tier->name || !(tier->rate > 0)) ledger_fail_damaged(ledger, "dp_tier");
  }
  return !error_is_set(ledger->error);
}

int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name) {
  if (error_is_set(ledger->error)) return -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, name) == 0) return i;
  }
  struct known_names known = {.asked = name};
  for (int i = 0; i < count; i++) known_names_add(&known, tiers[i].name);
  known_names_fail(&known, ledger->error,
                   count ? "unknown tier%s (%sknown tiers: %s)"
                         : "unknown tier (there are none: create one with dp_tier())");
  return -1;
}

/* ---- what a tier has spent ------------------------------------------------------------------- */

int budget_read(struct ledger *ledger, const char *tier, struct budget *budget) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT spent_high, spent_low, spent_slack, spent_delta,"
                                     " spent_curve, spent_pure, releases FROM dp_budget"
                                     " WHERE tier = ?",
                                     "s", tier);
  if (!statement_row(ledger, row))
    return ledger_fail(ledger, "the privacy ledger has no budget for tier '%s'", tier);
  *budget = (struct budget){.rate = {sqlite3_column_double(row, 0), sqlite3_column_double(row, 1)},
                            .slack = sqlite3_column_double(row, 2),
                            .delta = sqlite3_column_double(row, 3),
                            .curve = sqlite3_column_double(row, 4),
                            .pure = sqlite3_column_double(row, 5),
                            .releases = sqlite3_column_int64(row, 6)};
  return 1;
}

struct curve orders_read(struct ledger *ledger, const char *tier) {
  struct curve curve = {0, {0}};
  sqlite3_stmt *row =
      statement_bind(ledger, "SELECT curve FROM dp_order WHERE tier = ? ORDER BY alpha", "s", tier);
  for (int i = 0; statement_row(ledger, row) && i < RENYI_ORDERS; i++) {
    curve.values[i] = sqlite3_column_double(row, 0);
    curve.any |= curve.values[i] > 0;
  }
  return curve;
}

int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve) {
  for (int i = 0; i < RENYI_ORDERS; i++)
    statement_run(ledger, CHANGES_CHAIN,
                  "UPDATE dp_order SET curve = ? WHERE tier = ? AND alpha = ?", "dsd",
                  curve->values[i], tier, renyi_order(i));
  return !error_is_set(ledger->error);
}

struct payment payment_read(struct ledger *ledger, sqlite3_stmt *row) {
  return (struct payment){{sqlite3_column_double(row, 0), 0},
                          sqlite3_column_double(row, 1),
                          sqlite3_column_double(row, 2),
                          curve_column(ledger, row, 3)};
}

struct budget budget_after(const struct budget *budget, const struct payment *payment, int first) {
  struct budget after = *budget;
  after.rate = total_add(after.rate, total_up(payment->rate));
  if (payment->slack != 0) after.slack = nextafter(after.slack + payment->slack, INFINITY);
  if (payment->delta > 0) after.delta = nextafter(after.delta + payment->delta, INFINITY);
  if (payment->curve.any && payment->curve.values[AT_FILTER] > 0)
    after.curve = nextafter(after.curve + payment->curve.values[AT_FILTER], INFINITY);
  if (payment->curve.any)
    after.pure = nextafter(after.pure + payment->curve.values[AT_INFINITY], INFINITY);
  if (payment->rate.high > 0) after.pure = INFINITY;
  if (after.releases < LEDGER_MOST_ROWS) after.releases += first;
  return after;
}

int budget_within(const struct ledger_tier *tier, const struct budget *budget) {
  return (total_within(tier->accountant->total(tier, budget), tier->rate_limit) ||
          budget->pure <= tier->pure_limit) &&
         budget->delta <= tier->delta_keys &&
         (!tier->accountant->reserve_slack || budget->slack <= tier->slack_limit);
}

double budget_used(const struct ledger_tier *tier, const struct budget *budget) {
  double used = total_up(tier->accountant->total(tier, budget)) / tier->rate_limit;
  return fmin(used, budget->pure / tier->pure_limit); /* NaN if the limit is: then it is `used` */
}

double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve) {
  double epsilon = tier->accountant->epsilon(tier, total_up(budget->rate),
                                             curve && curve->any ? curve->values : 0);
  /* A tier within its limit has spent at most its epsilon, but the computed one is rounded up. */
  int is_margin = isfinite(epsilon) && epsilon > tier->epsilon && budget_within(tier, budget);
  return is_margin ? tier->epsilon : epsilon;
}

int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget) {
  struct curve curve = {0, {0}};
  if (budget->curve > 0) curve = orders_read(ledger, tier->name);
  return statement_run(ledger, CHANGES_BUDGET,
                       "UPDATE dp_budget SET spent_high = ?2, spent_low = ?3,"
                       " spent_slack = ?4, spent_delta = ?5, releases = ?6,"
                       " spent_rate = ?7, spent_epsilon = ?8, remaining_epsilon ="
                       " max(0.0, epsilon - ?8), spent_curve = ?9, spent_pure = ?10"
                       " WHERE tier = ?1",
                       "sddddidddd", tier->name, budget->rate.high, budget->rate.low, budget->slack,
                       budget->delta, budget->releases, total_up(budget->rate),
                       budget_epsilon(tier, budget, &curve), budget->curve, budget->pure);
}

double budget_repeats(const struct ledger_tier *tier, const struct budget *spent,
                      const struct budget *amount) {
  const struct accountant *accountant = tier->accountant;
  double times = (double)INFINITY, cost = total_up(accountant->total(tier, amount));
  if (cost > 0) times = total_left(accountant->total(tier, spent), tier->rate_limit) / cost;
  times = fmax(times, (tier->pure_limit - spent->pure) / amount->pure);
  if (amount->delta > 0) times = fmin(times, (tier->delta_keys - spent->delta) / amount->delta);
  if (amount->slack > 0 && accountant->reserve_slack)
    times = fmin(times, (tier->slack_limit - spent->slack) / amount->slack);
  return fmax(0, floor(times));
}

int ledger_standing(struct ledger *ledger, const char *tier, struct ledger_standing *standing) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT spent_epsilon, remaining_epsilon, releases_left"
                                     " FROM dp_budget WHERE tier = ?",
                                     "s", tier);
  if (!statement_row(ledger, row)) return 0;
  standing->spent_epsilon = sqlite3_column_double(row, 0);
  standing->remaining_epsilon = sqlite3_column_double(row, 1);
  standing->releases_left = sqlite3_column_int64(row, 2);
  return 1;
}

/* ---- periods --------------------------------------------------------------------------------- */

/* A tier with the period 'month' has its whole budget in each calendar month, in UTC. A charge
** counts in the period in which it is made. dp_budget and dp_order hold the totals of the period
** that the tier has entered, and period_enter() sets them to 0, so all other code can read a budget
** as if there were no periods. A tier never goes back to an earlier period, whatever the clock
** says.
**
** A tier pays for each part of a release's cost only once, over all periods. In each period the sum
** of the payments stays within the tier's limit, so over k periods it is at most k times the limit:
** the k budgets together act as one filter with k times the limit (struct accountant: composed). */

/* clang-format off */
/* SQL for the number of periods of a kind from the one that begins on day `first` to the one that
** begins on day `last`, both included. */
#define MONTHS(day) "(12 * strftime('%Y', " day ") + strftime('%m', " day "))"
#define PERIODS(kind, first, last) \
  "CAST(1 + CASE " kind " WHEN 'day' THEN julianday(" last ") - julianday(" first ")" \
  " WHEN 'week' THEN (julianday(" last ") - julianday(" first ")) / 7" \
  " ELSE (" MONTHS(last) " - " MONTHS(first) ")" \
  " / CASE " kind " WHEN 'month' THEN 1 WHEN 'quarter' THEN 3 ELSE 12 END END AS INTEGER)"

/* A tier whose rate is at least this and whose period is over, and when the new one began. */
static const char find_period_over[] =
  "SELECT name, started FROM (SELECT name, rate, period_start,"
  " " PERIOD_START("period", "'now'") " AS started FROM dp_tier JOIN dp_budget ON tier = name)"
  " WHERE rate >= ? AND started > ifnull(period_start, '') LIMIT 1";
static const char enter_period[] =
  "UPDATE dp_budget SET period_start = ?2, period_end = " PERIOD_END(TIER_PERIOD, "?2") ","
  " spent_epsilon = 0.0, remaining_epsilon = epsilon, spent_rate = 0.0, spent_delta = 0.0,"
  " releases = 0, spent_high = 0.0, spent_low = 0.0, spent_slack = 0.0, spent_curve = 0.0,"
  " spent_pure = 0.0 WHERE tier = ?1";
/* The periods of a tier, from its creation or its first charge, to the one that dp_budget holds. */
static const char count_periods[] =
  "SELECT max(1, " PERIODS("kind", "min(born, first)", "period_start") ") FROM (SELECT"
  " t.period AS kind, " PERIOD_START("t.period", "created_at") " AS born, period_start,"
  " ifnull((SELECT period FROM dp_charge WHERE tier = t.name ORDER BY id LIMIT 1), '9999') AS first"
  " FROM dp_tier t JOIN dp_budget ON tier = name WHERE name = ?)";
/* clang-format on */

#define PERIOD_KINDS 5

/* overlaps[j] is the largest number of periods of kind j that have a day in common with one of this
** kind. */
static const struct {
  const char *name;
  int overlaps[PERIOD_KINDS];
} kinds[PERIOD_KINDS] = {
    {"day", {1, 1, 1, 1, 1}},       {"week", {7, 1, 2, 2, 2}},     {"month", {31, 6, 1, 1, 1}},
    {"quarter", {92, 14, 3, 1, 1}}, {"year", {366, 54, 12, 4, 1}},
};

static int kind_of(const char *period) {
  int kind = 0;
  while (kind < PERIOD_KINDS && strcmp(kinds[kind].name, period) != 0) kind++;
  return kind;
}

int ledger_period_is_known(const char *period) {
  return kind_of(period) < PERIOD_KINDS;
}

int period_overlaps(const char *inner, const char *outer) {
  if (!outer) return 1;
  return inner ? kinds[kind_of(inner)].overlaps[kind_of(outer)] : 0;
}

int period_is_over(struct ledger *ledger) {
  return statement_row(ledger, statement_bind(ledger, find_period_over, "d", 0.0));
}

/* ---- entering a period ----------------------------------------------------------------------- */

int period_enter(struct ledger *ledger, const char *tier, const char *start) {
  return statement_run(ledger, CHANGES_BUDGET, enter_period, "ss", tier, start) &&
         statement_run(ledger, CHANGES_CHAIN, "UPDATE dp_order SET curve = 0.0 WHERE tier = ?", "s",
                       tier);
}

int periods_enter(struct ledger *ledger, double rate, int *entered) {
  sqlite3_stmt *row;
  while (statement_row(ledger, row = statement_bind(ledger, find_period_over, "d", rate)))
    *entered |= period_enter(ledger, column_text(ledger, row, 0), column_borrow(ledger, row, 1));
  return !error_is_set(ledger->error);
}

static const char select_period[] = "SELECT period_start FROM dp_budget WHERE tier = ?";

void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size) {
  static const char *const months[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
  sqlite3_stmt *row = statement_bind(ledger, select_period, "s", tier->name);
  const char *start = statement_row(ledger, row) ? (const char *)sqlite3_column_text(row, 0) : 0;
  int month = start && strlen(start) == 10 ? 10 * (start[5] - '0') + start[6] - '1' : -1;
  const char *kind = month >= 0 && month < 12 && tier->period ? tier->period : "";
  *name = 0;
  if (strcmp(kind, "day") == 0) sqlite3_snprintf((int)size, name, "%s", start);
  if (strcmp(kind, "week") == 0) sqlite3_snprintf((int)size, name, "the week from %s", start);
  if (strcmp(kind, "month") == 0)
    sqlite3_snprintf((int)size, name, "%s %.4s", months[month], start);
  if (strcmp(kind, "quarter") == 0)
    sqlite3_snprintf((int)size, name, "quarter %d of %.4s", month / 3 + 1, start);
  if (strcmp(kind, "year") == 0) sqlite3_snprintf((int)size, name, "%.4s", start);
}

char *period_entered(struct ledger *ledger, const char *tier) {
  return statement_text(ledger, select_period, "s", tier);
}

int period_begins_on(struct ledger *ledger, const struct ledger_tier *tier, const char *start) {
  return statement_integer(ledger, "SELECT ?2 IS " PERIOD_START(TIER_PERIOD, "?2"), "ss",
                           tier->name, start) != 0;
}

/* ---- what periods add up to ------------------------------------------------------------------ */

void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json) {
  if (!tier->period) return;
  double count = (double)statement_integer(ledger, count_periods, "s", tier->name);
  /* The sum of the epsilons is always valid. The accountant may have a smaller bound. */
  double epsilon = tier->epsilon * count;
  if (tier->accountant->composed && tier->delta * count < 1)
    epsilon = fmin(epsilon, tier->accountant->composed(tier, count));
  sqlite3_str_appendf(json,
                      ",\"period\":\"%s\",\"per_period\":{\"epsilon\":%s,\"delta\":%s},"
                      "\"all_periods\":{\"periods\":%.0f,\"epsilon\":%s,\"delta\":%s}",
                      tier->period, NUMBER_TEXT(tier->epsilon), NUMBER_TEXT(tier->delta), count,
                      NUMBER_TEXT(epsilon),
                      NUMBER_TEXT(fmin(1, tier->delta * count * (1 + 0x1p-52))));
}
