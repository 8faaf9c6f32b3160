/*
** charge.c: who pays what. Owns tiers, charges, budgets and the hash chain.
**
** Exposure. Members of a tier also see everything published at outer tiers, so tier k is exposed to
** the least noisy publication of a release at k or outside k, and releases add up:
**
**     spent_k = sum over releases of the rate of the innermost publication at k or outer.
**
** A publication at tier j with rate R therefore costs every tier k at j or inside it whatever of R
** it has not yet paid for that release. A tier that is created later pays at once what its nearest
** outer neighbour has paid, release by release: that is what it sees.
**
** Filters. The limit of a tier is fixed when it is created, from the noise part of its delta:
**   rdp  a Renyi filter at one order (Feldman and Zrnic 2021), the order that is best for a pure
**        rate;
**   gdp  a Gaussian filter (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2022) on the
**        total rate, with a part of delta set aside for the lattice: the noise is a discrete
**        Gaussian, at total variation `slack` from a rounded continuous one, which costs
**        (1 + e^epsilon) slack.
** Rates charged are those of the continuous Gaussian of variance V - 1/12, so that one number
** serves both; it is above the discrete Gaussian's s^2/(2V) by less than one part in 10^7.
*/
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "ledger/internal.h"
#include "math/gaussian.h"
#include "math/laplace.h"
#include "math/renyi.h"
#include "math/rounding.h"

SQLITE_EXTENSION_INIT3

/* ---- tiers ----------------------------------------------------------------------------------- */

static const char *const accountant_name[] = {"rdp", "gdp", "pure"};

/* An accountant by its name; the first for one that is unknown. */
static int accountant_of(const char *name) {
  int accountant = LEDGER_PURE;
  while (name && accountant > 0 && strcmp(accountant_name[accountant], name) != 0) accountant--;
  return name ? accountant : LEDGER_RDP;
}

void ledger_tiers_free(struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) sqlite3_free(tiers[i].name);
  sqlite3_free(tiers);
}

static void read_tier(struct ledger *ledger, sqlite3_stmt *row, struct ledger_tier *tier) {
  tier->name = column_copy(ledger, row, 0);
  tier->rate = sqlite3_column_double(row, 1);
  tier->epsilon = sqlite3_column_double(row, 2);
  tier->delta = sqlite3_column_double(row, 3);
  tier->delta_keys = sqlite3_column_double(row, 4);
  tier->accountant = accountant_of((const char *)sqlite3_column_text(row, 5));
  tier->filter_order = sqlite3_column_double(row, 6);
  tier->rate_limit = sqlite3_column_double(row, 7);
  tier->slack_limit = sqlite3_column_double(row, 8);
}

int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count) {
  *tiers = 0;
  *count = 0;
  sqlite3_stmt *row = statement_bind(ledger, TIER_LIST, "");
  while (statement_row(ledger, row)) {
    struct ledger_tier *grown =
        sqlite3_realloc64(*tiers, sizeof **tiers * (sqlite3_uint64)(*count + 1));
    if (!grown) {
      ledger_fail(ledger, "out of memory");
      break;
    }
    *tiers = grown;
    read_tier(ledger, row, &grown[*count]);
    if (!grown[(*count)++].name || !(grown[*count - 1].rate > 0))
      ledger_fail_damaged(ledger, "dp_tier");
  }
  return !error_is_set(ledger->error);
}

int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name) {
  if (error_is_set(ledger->error)) return -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, name) == 0) return i;
  }
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) sqlite3_str_appendf(known, "%s%s", i ? ", " : "", tiers[i].name);
  char *list = sqlite3_str_finish(known);
  if (count) {
    ledger_fail(ledger, "unknown tier (known tiers: %s)", list ? list : "");
  } else {
    ledger_fail(ledger, "unknown tier (there are none: create one with dp_tier())");
  }
  sqlite3_free(list);
  return -1;
}

/* ---- budgets --------------------------------------------------------------------------------- */

static int budget_read(struct ledger *ledger, const char *tier, struct budget *budget) {
  sqlite3_stmt *row = statement_bind(ledger, BUDGET_READ, "s", tier);
  if (!statement_row(ledger, row))
    return ledger_fail(ledger, "the privacy ledger has no budget for tier '%s'", tier);
  budget->rate.high = sqlite3_column_double(row, 0);
  budget->rate.low = sqlite3_column_double(row, 1);
  budget->slack = sqlite3_column_double(row, 2);
  budget->delta = sqlite3_column_double(row, 3);
  budget->releases = sqlite3_column_int64(row, 4);
  budget->curve = sqlite3_column_double(row, 5);
  sqlite3_reset(row);
  return 1;
}

/* The total curve of a tier at the stored orders; one of zeros where it has none. */
static struct curve orders_read(struct ledger *ledger, const char *tier) {
  struct curve curve = {0, {0}};
  sqlite3_stmt *row = statement_bind(ledger, ORDERS_READ, "s", tier);
  for (int i = 0; statement_row(ledger, row) && i < RENYI_ORDERS; i++) {
    curve.values[i] = sqlite3_column_double(row, 0);
    curve.any |= curve.values[i] > 0;
  }
  sqlite3_reset(row);
  return curve;
}

static int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve) {
  for (int i = 0; i < RENYI_ORDERS; i++)
    statement_run(ledger, ORDER_WRITE, "dsd", curve->values[i], tier, renyi_order(i));
  return !error_is_set(ledger->error);
}

/* The part of a tier's delta that converts rates to an epsilon. */
static double noise_delta(const struct ledger_tier *tier) {
  double reserved = tier->slack_limit > 0 ? tier->slack_limit * (1 + exp(tier->epsilon)) : 0;
  return tier->delta - tier->delta_keys - reserved;
}

/*
** What the filter holds against its limit: rates, where a curve counts as the rate that costs the
** same at the filter order; at infinity, where no rate is finite, the curve itself.
*/
static struct total filter_total(const struct ledger_tier *tier, const struct budget *budget) {
  if (tier->accountant == LEDGER_PURE)
    return (struct total){budget->rate.high > 0 ? INFINITY : budget->curve, 0};
  if (!(budget->curve > 0)) return budget->rate;
  return total_add(budget->rate, nextafter(budget->curve / tier->filter_order, INFINITY));
}

int budget_within(const struct ledger_tier *tier, const struct budget *budget) {
  return total_within(filter_total(tier, budget), tier->rate_limit) &&
         budget->delta <= tier->delta_keys &&
         (tier->accountant != LEDGER_GDP || budget->slack <= tier->slack_limit);
}

double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve) {
  double rate = total_up(budget->rate), delta = noise_delta(tier);
  int curved = curve && curve->any;
  if (tier->accountant == LEDGER_PURE)
    return rate > 0 ? INFINITY : curved ? curve->values[RENYI_ORDERS - 1] : 0;
  if (!(delta > 0)) return INFINITY;
  if (rate == 0 && !curved) return 0;
  double epsilon = published_up(tier->accountant == LEDGER_GDP ? gaussian_epsilon(rate, delta)
                                : curved ? renyi_epsilon(rate, curve->values, delta)
                                         : zcdp_epsilon(rate, delta));
  /* Within the limit the truth is at most the tier's epsilon, whatever the margin makes of it. */
  return epsilon > tier->epsilon && budget_within(tier, budget) ? tier->epsilon : epsilon;
}

static int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                        const struct budget *budget) {
  struct curve curve = {0, {0}};
  if (budget->curve > 0) curve = orders_read(ledger, tier->name);
  return statement_run(ledger, BUDGET_WRITE, "sddddiddd", tier->name, budget->rate.high,
                       budget->rate.low, budget->slack, budget->delta, budget->releases,
                       total_up(budget->rate), budget_epsilon(tier, budget, &curve), budget->curve);
}

int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at) {
  double left = 0x1p52;
  for (int k = 0; k <= at; k++) {
    struct budget budget;
    if (!budget_read(ledger, tiers[k].name, &budget)) return -1;
    double needed = tiers[at].rate; /* a Gaussian one, or where there is none a Laplace one */
    if (tiers[k].accountant == LEDGER_PURE) needed = laplace_distance(needed);
    struct total total = filter_total(&tiers[k], &budget);
    left = fmin(left, floor(total_left(total, tiers[k].rate_limit) / needed));
    if (tiers[k].accountant == LEDGER_GDP)
      left = fmin(left, floor((tiers[k].slack_limit - budget.slack) /
                              gaussian_lattice_slack((uint64_t)1 << 40)));
  }
  return (int64_t)fmax(left, 0);
}

static int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int at = 0; at < count && !error_is_set(ledger->error); at++)
    statement_run(ledger, BUDGET_LEFT, "si", tiers[at].name, releases_left(ledger, tiers, at));
  return !error_is_set(ledger->error);
}

int ledger_standing(struct ledger *ledger, const char *tier, struct ledger_standing *standing) {
  sqlite3_stmt *row = statement_bind(ledger, STANDING, "s", tier);
  if (!statement_row(ledger, row)) return 0;
  standing->spent_epsilon = sqlite3_column_double(row, 0);
  standing->remaining_epsilon = sqlite3_column_double(row, 1);
  standing->releases_left = sqlite3_column_int64(row, 2);
  sqlite3_reset(row);
  return 1;
}

int64_t ledger_last_charge(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_LAST, "");
  int64_t last = statement_row(ledger, row) ? sqlite3_column_int64(row, 0) : 0;
  sqlite3_reset(row);
  return last;
}

double ledger_charged_since(struct ledger *ledger, int64_t charge, const char *tier) {
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_SINCE, "is", charge, tier);
  double rate = 0;
  while (statement_row(ledger, row)) {
    struct curve curve = curve_column(ledger, row, 1);
    double order = sqlite3_column_double(row, 2);
    rate += sqlite3_column_double(row, 0);
    if (curve.any) rate += isinf(order) ? curve.values[AT_FILTER] : curve.values[AT_FILTER] / order;
  }
  return rate;
}

/* ---- the hash chain -------------------------------------------------------------------------- */

static void append_double(sqlite3_str *text, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  sqlite3_str_appendf(text, "%016llx\n", (unsigned long long)bits);
}

void text_hash(const char *text, size_t size, char hash[CHARGE_HASH_SIZE]) {
  uint8_t digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, (const uint8_t *)text, size);
  sodium_bin2hex(hash, CHARGE_HASH_SIZE, digest, sizeof digest);
}

int charge_hash(const char *previous, const struct charge *charge, char hash[CHARGE_HASH_SIZE]) {
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, "%s\n%lld\n%lld\n%s\n%s\n%s\n", previous, (long long)charge->id,
                      (long long)charge->release_id, charge->release, charge->tier,
                      charge->subject);
  append_double(text, charge->tier_rate);
  append_double(text, charge->rate);
  append_double(text, charge->slack);
  append_double(text, charge->delta);
  for (int i = 0; i < charge->curve_size; i++)
    sqlite3_str_appendf(text, "%02x", ((const unsigned char *)charge->curve)[i]);
  sqlite3_str_appendf(text, "\n%s\n", charge->at);
  size_t size = (size_t)sqlite3_str_length(text);
  char *message = sqlite3_str_finish(text);
  if (!message) return 0;
  text_hash(message, size, hash);
  sqlite3_free(message);
  return 1;
}

/* Appends one charge to dp_charge. */
static int charge_append(struct ledger *ledger, struct charge *charge) {
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_LAST, "");
  if (!statement_row(ledger, row)) return 0;
  char *previous = column_copy(ledger, row, 1);
  char *at = column_copy(ledger, row, 2);
  charge->id = sqlite3_column_int64(row, 0);
  if (charge->id >= 0 && charge->id < LEDGER_MOST_ROWS) {
    charge->id++;
  } else {
    ledger_fail_damaged(ledger, "dp_charge");
  }
  charge->at = at;
  sqlite3_reset(row);
  row = statement_bind(ledger, CHARGE_SUBJECT, "i", charge->release_id);
  char *subject = statement_row(ledger, row) ? column_copy(ledger, row, 0) : 0;
  charge->subject = subject;
  sqlite3_reset(row);
  if (!subject) ledger_fail_damaged(ledger, "dp_release");
  char hash[CHARGE_HASH_SIZE];
  if (!error_is_set(ledger->error) && !charge_hash(previous ? previous : "", charge, hash))
    ledger_fail(ledger, "out of memory");
  statement_run(ledger, CHARGE_INSERT, "iissdddssb", charge->id, charge->release_id,
                charge->release, charge->tier, charge->rate, charge->slack, charge->delta,
                charge->at, hash, charge->curve, charge->curve_size);
  sqlite3_free(previous);
  sqlite3_free(subject);
  sqlite3_free(at);
  return !error_is_set(ledger->error);
}

/* ---- charging -------------------------------------------------------------------------------- */

/* What one tier has to pay for one release, and its budget before and after. */
struct bill {
  struct payment payment;
  struct budget budget;
};

static int is_free(const struct payment *payment) {
  return payment->rate.high == 0 && payment->delta == 0 && !payment->curve.any;
}

/* The budget after a payment. */
static struct budget budget_after(const struct budget *budget, const struct payment *payment,
                                  int first) {
  struct budget after = *budget;
  after.rate = total_add(after.rate, total_up(payment->rate));
  if (payment->slack > 0) after.slack = nextafter(after.slack + payment->slack, INFINITY);
  if (payment->delta > 0) after.delta = nextafter(after.delta + payment->delta, INFINITY);
  if (payment->curve.any && payment->curve.values[AT_FILTER] > 0)
    after.curve = nextafter(after.curve + payment->curve.values[AT_FILTER], INFINITY);
  if (after.releases < LEDGER_MOST_ROWS) after.releases += first;
  return after;
}

/* Says why a tier refuses: what it needs and what is left. Always returns 0. */
static int refuse(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct budget *budget, const struct budget *after,
                  const struct payment *payment) {
  if (!(after->delta <= tier->delta_keys))
    return ledger_fail(ledger,
                       "tier '%s' would exceed its delta_keys of %g: this needs delta %g, and "
                       "%g is left (nothing was charged or read)",
                       tier->name, tier->delta_keys, payment->delta,
                       tier->delta_keys - budget->delta);
  if (tier->accountant == LEDGER_GDP && !(after->slack <= tier->slack_limit))
    return ledger_fail(ledger,
                       "tier '%s' would exceed the lattice slack of its exact-Gaussian budget: "
                       "this needs %g, and %g is left (nothing was charged or read)",
                       tier->name, payment->slack, tier->slack_limit - budget->slack);
  if (tier->accountant == LEDGER_PURE)
    return ledger_fail(
        ledger,
        "tier '%s' would exceed its budget of epsilon %g: this needs %g, and %g is left "
        "(nothing was charged or read)",
        tier->name, tier->epsilon, payment->curve.values[AT_FILTER],
        fmax(0, tier->epsilon - budget->curve));
  double share = tier->accountant == LEDGER_RDP ? 1 / tier->filter_order : 0;
  double needed =
      total_up(payment->rate) + (payment->curve.any ? payment->curve.values[AT_FILTER] * share : 0);
  return ledger_fail(ledger,
                     "tier '%s' would exceed its budget of epsilon %g at delta %g: this needs "
                     "rate %g, and %g of %g is left (nothing was charged or read)",
                     tier->name, tier->epsilon, tier->delta, needed,
                     fmax(0, total_left(budget->rate, tier->rate_limit) - budget->curve * share),
                     tier->rate_limit);
}

/* Adds a bill's payment to its budget, or refuses. */
static int bill_admit(struct ledger *ledger, const struct ledger_tier *tier, struct bill *bill,
                      int first) {
  if (bill->payment.curve.any && tier->accountant == LEDGER_GDP)
    return ledger_fail(ledger,
                       "tier '%s' has exact Gaussian accounting, and the release is not Gaussian "
                       "(nothing was charged or read)",
                       tier->name);
  if (bill->payment.rate.high > 0 && tier->accountant == LEDGER_PURE)
    return ledger_fail(
        ledger,
        "tier '%s' has a budget of pure differential privacy, and the release has Gaussian "
        "noise (ask for \"mechanism\":\"laplace\"; nothing was charged or read)",
        tier->name);
  struct budget after = budget_after(&bill->budget, &bill->payment, first);
  if (!budget_within(tier, &after))
    return refuse(ledger, tier, &bill->budget, &after, &bill->payment);
  bill->budget = after;
  return 1;
}

struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier) {
  struct payment paid = {{0, 0}, 0, 0, {0, {0}}};
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_PAID, "is", release_id, tier);
  while (statement_row(ledger, row)) {
    struct curve curve = curve_column(ledger, row, 3);
    paid.rate = total_add(paid.rate, sqlite3_column_double(row, 0));
    paid.slack += sqlite3_column_double(row, 1);
    paid.delta += sqlite3_column_double(row, 2);
    curve_add(&paid.curve, &curve);
  }
  return paid;
}

static int bill_make(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_release *release, const struct cost *cost,
                     struct bill *bill) {
  struct payment paid = paid_for(ledger, release->id, tier->name);
  struct curve curve = curve_of(cost, tier->filter_order);
  if (curve.any && isnan(curve.values[AT_FILTER])) /* which would pass for nothing to pay */
    return ledger_fail(ledger, "out of memory");
  double rate = total_missing(paid.rate, cost->rate);
  bill->payment = (struct payment){{rate, 0},
                                   rate > 0 ? fmax(0, release->slack - paid.slack) : 0,
                                   cost->delta,
                                   curve_missing(&curve, &paid.curve)};
  return budget_read(ledger, tier->name, &bill->budget) &&
         (is_free(&bill->payment) || bill_admit(ledger, tier, bill, is_free(&paid)));
}

static int bill_pay(struct ledger *ledger, const struct ledger_tier *tier, int64_t release_id,
                    const char *release, const struct bill *bill) {
  const struct payment *payment = &bill->payment;
  unsigned char bytes[CURVE_BYTES];
  if (is_free(payment)) return 1;
  struct charge charge = {.release_id = release_id,
                          .release = release,
                          .tier = tier->name,
                          .tier_rate = tier->rate,
                          .rate = total_up(payment->rate),
                          .slack = payment->slack,
                          .delta = payment->delta};
  charge.curve = curve_bytes(&payment->curve, bytes, &charge.curve_size);
  if (payment->curve.any) {
    struct curve total = orders_read(ledger, tier->name);
    curve_add(&total, &payment->curve);
    orders_write(ledger, tier->name, &total);
  }
  return charge_append(ledger, &charge) && budget_write(ledger, tier, &bill->budget);
}

static int is_cost(const struct cost *cost) {
  int sound = cost->rate >= 0 && isfinite(cost->rate) && cost->delta >= 0 && cost->delta < 1;
  struct curve curve = curve_of(cost, NAN);
  for (int i = 0; curve.any && i < RENYI_ORDERS; i++) sound = sound && curve.values[i] >= 0;
  return sound && (cost->rate > 0 || cost->curve);
}

int ledger_charge(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, const struct cost *cost) {
  if (!seal_trust_books(ledger)) return 0;
  if (!is_cost(cost)) return ledger_fail(ledger, "a release cannot have rate %g", cost->rate);
  struct bill *bills = sqlite3_malloc64(sizeof *bills * (sqlite3_uint64)(at + 1));
  if (!bills) return ledger_fail(ledger, "out of memory");
  int admitted = 1, changed = 0;
  for (int k = 0; k <= at && admitted; k++) { /* L4: all are checked before any is charged */
    admitted = bill_make(ledger, &tiers[k], release, cost, &bills[k]);
    changed |= admitted && !is_free(&bills[k].payment);
  }
  for (int k = 0; k <= at && admitted; k++)
    admitted = bill_pay(ledger, &tiers[k], release->id, release->name, &bills[k]);
  sqlite3_free(bills);
  return admitted && (!changed || budgets_left(ledger, tiers, count));
}

/* ---- creating a tier ------------------------------------------------------------------------- */

int filter_limits(struct ledger_tier *tier) {
  double delta = tier->delta - tier->delta_keys;
  tier->filter_order = tier->accountant == LEDGER_PURE ? INFINITY : NAN;
  if (tier->accountant == LEDGER_PURE) {
    tier->rate_limit = tier->epsilon;
    return 1;
  }
  tier->rate_limit = tier->accountant == LEDGER_GDP
                         ? gaussian_rate_beside(tier->epsilon, delta, tier->slack_limit)
                         : zcdp_rate(tier->epsilon, delta, &tier->filter_order);
  tier->rate_limit *= 1 - 0x1p-46; /* a cap: below the truth by what math/ may be wrong */
  return tier->rate_limit > 0;
}

int filter_make(struct ledger_tier *tier) {
  tier->slack_limit = 0;
  if (tier->accountant == LEDGER_GDP)
    tier->slack_limit =
        gaussian_slack_beside(tier->epsilon, tier->delta - tier->delta_keys, tier->rate);
  int admits_a_draw = tier->accountant != LEDGER_GDP || tier->slack_limit >= GAUSSIAN_DRAW_SLACK;
  return admits_a_draw && filter_limits(tier);
}

double order_allowed(const struct ledger_tier *tier, double alpha) {
  if (tier->accountant != LEDGER_PURE)
    return renyi_allowed(alpha, tier->epsilon, tier->delta - tier->delta_keys);
  return isinf(alpha) ? tier->epsilon : -INFINITY; /* no finite order certifies without a delta */
}

static int store_tier(struct ledger *ledger, const struct ledger_tier *tier) {
  statement_run(ledger, TIER_INSERT, "sddddsddd", tier->name, tier->rate, tier->epsilon,
                tier->delta, tier->delta_keys, accountant_name[tier->accountant],
                tier->filter_order, tier->rate_limit, tier->slack_limit);
  statement_run(ledger, BUDGET_INSERT, "sdd", tier->name, tier->epsilon, tier->delta);
  for (int i = 0; i < RENYI_ORDERS; i++) {
    double alpha = renyi_order(i);
    statement_run(ledger, ORDER_INSERT, "sdd", tier->name, alpha, order_allowed(tier, alpha));
  }
  return !error_is_set(ledger->error);
}

/* One release that the nearest outer tier has paid for. */
struct inherited {
  int64_t release_id;
  char *release;
};

static int inherited_read(struct ledger *ledger, const char *outer, struct inherited **list,
                          int *count) {
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_PAID_EACH, "s", outer);
  while (statement_row(ledger, row)) {
    struct inherited *grown =
        sqlite3_realloc64(*list, sizeof **list * (sqlite3_uint64)(*count + 1));
    if (!grown) return ledger_fail(ledger, "out of memory");
    *list = grown;
    grown[(*count)++] =
        (struct inherited){sqlite3_column_int64(row, 0), column_copy(ledger, row, 1)};
  }
  return !error_is_set(ledger->error);
}

/*
** Noise on top of a model is proved for RDP alone (mechanism/sgd.h), though it is charged as a
** rate.
*/
static int may_inherit(struct ledger *ledger, const struct ledger_tier *tier, const char *outer) {
  if (tier->accountant != LEDGER_GDP) return 1;
  sqlite3_stmt *row = statement_bind(ledger, MODEL_PAID, "s", outer);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  ledger_fail(ledger,
              "tier '%s' would see model '%s' with noise on top, which exact Gaussian accounting "
              "does not cover (use the accountant 'rdp')",
              tier->name, (const char *)sqlite3_column_text(row, 0));
  sqlite3_reset(row);
  return 0;
}

/* A new tier sees what its nearest outer neighbour has seen, and pays for it. */
static int pay_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer) {
  struct inherited *list = 0;
  int count = 0;
  if (!may_inherit(ledger, tier, outer)) return 0;
  inherited_read(ledger, outer, &list, &count);
  struct bill bill = {0};
  if (!error_is_set(ledger->error)) budget_read(ledger, tier->name, &bill.budget);
  for (int i = 0; i < count && !error_is_set(ledger->error); i++) {
    bill.payment = paid_for(ledger, list[i].release_id, outer);
    struct curve *curve = &bill.payment.curve;
    if (curve
            ->any) /* the outer tier's filter order is another: the chord is an upper bound there */
      curve->values[AT_FILTER] = renyi_curve_at(curve->values, tier->filter_order);
    if (bill_admit(ledger, tier, &bill, 1))
      bill_pay(ledger, tier, list[i].release_id, list[i].release, &bill);
  }
  for (int i = 0; i < count; i++) sqlite3_free(list[i].release);
  sqlite3_free(list);
  return !error_is_set(ledger->error);
}

static int same_tier(const struct ledger_tier *a, const struct ledger_tier *b) {
  return a->rate == b->rate && a->epsilon == b->epsilon && a->delta == b->delta &&
         a->delta_keys == b->delta_keys && a->accountant == b->accountant;
}

/* 1 to go on, 0 when the tier is there already (no error) or clashes with another (error). */
static int tier_is_new(struct ledger *ledger, const struct ledger_tier *tier,
                       const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, tier->name) == 0)
      return same_tier(tier, &tiers[i])
                 ? 0
                 : ledger_fail(ledger,
                               "tier '%s' exists with other parameters (tiers are immutable: "
                               "choose another name)",
                               tier->name);
    if (tiers[i].rate == tier->rate)
      return ledger_fail(ledger,
                         "tier '%s' has the same rate %g (rates order the tiers: choose "
                         "another)",
                         tiers[i].name, tier->rate);
  }
  sqlite3_stmt *row = statement_bind(ledger, TIER_DROPPED, "s", tier->name);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  sqlite3_reset(row);
  return ledger_fail(ledger,
                     "tier '%s' was dropped (the name of a tier is never used again: choose "
                     "another)",
                     tier->name);
}

/* releases_left of all tiers, the new one among them. */
static int refresh_left(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count)) budgets_left(ledger, tiers, count);
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

static int create_tier(struct ledger *ledger, struct ledger_tier tier) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count) && tier_is_new(ledger, &tier, tiers, count) &&
      tier_make(ledger, &tier, tiers, count) && store_tier(ledger, &tier)) {
    const struct ledger_tier *outer = tier_outside(&tier, tiers, count);
    if (!outer || pay_inherited(ledger, &tier, outer->name)) refresh_left(ledger);
  }
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

/*
** Whether anything was ever charged to a tier, or published or stored at it: failed releases too.
*/
static int tier_is_unused(struct ledger *ledger, const char *name) {
  sqlite3_stmt *row = statement_bind(ledger, TIER_USED, "s", name);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  ledger_fail(ledger,
              "tier '%s' has been charged for release '%s', and stays (only a tier that was never "
              "charged can be dropped)",
              name, (const char *)sqlite3_column_text(row, 0));
  sqlite3_reset(row);
  return 0;
}

static void drop_tier(struct ledger *ledger, const char *name) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count) && ledger_tier_find(ledger, tiers, count, name) >= 0 &&
      tier_is_unused(ledger, name) && statement_run(ledger, TIER_DROP, "s", name) &&
      statement_run(ledger, ORDERS_DROP, "s", name) &&
      statement_run(ledger, BUDGET_DROP, "s", name))
    refresh_left(ledger);
  ledger_tiers_free(tiers, count);
}

int ledger_tier_drop(struct ledger *ledger, const char *name) {
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger)) drop_tier(ledger, name);
  return ledger_commit(ledger);
}

int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *tier) {
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger)) create_tier(ledger, *tier);
  return ledger_commit(ledger);
}
