/* charge.c: writes dp_charge and its hash chain, and decides how much each tier pays for a release.
**
** Exposure. Members of a tier also see everything that is published at outer tiers. For each
** release, the members of tier k are therefore exposed to the least noisy publication among those
** at tier k and at the tiers outside it. The exposures to all releases add up:
**
**     spent_k = sum over releases of the rate of the innermost publication at k or outer.
**
** A publication at tier j with rate R is therefore charged to tier j and to every tier inside it.
** Each of these tiers pays the part of R that it has not yet paid for this release. The members of
** a new tier see everything that is published at the nearest outer tier and outside it. When the
** ledger creates the new tier, it therefore charges the new tier, release by release, for
** everything that the nearest outer tier has paid.
**
** The accountant fixes the limit of a tier when the tier is created. For Gaussian noise of variance
** V the rate charged is that of the continuous Gaussian of variance V - 1/12. This rate exceeds the
** rate of the discrete Gaussian, s^2/(2V) for sensitivity s, by less than one part in 10^7. It is
** therefore valid for the discrete and for the continuous Gaussian (math/math.h).
** Tests: tests/ledger/test_exposure.py, tests/release/test_until.py,
** tests/attacks/test_race.py */
#include <math.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* SQL for the time at which an inherited charge counts (c: the row of dp_charge, o: the row of
** dp_tier for the charged tier): that of the charge or, if the clock went back so that it is
** outside the period in which the charge counts, the nearest day of this period. */
#define COUNTED_AT                                                                                 \
  "min(max(c.at, ifnull(c.period, '')),"                                                           \
  " ifnull(date(" PERIOD_END("o.period", "c.period") ", '-1 day'), '9999'))"

static const char select_last_charge[] =
    "SELECT id, hash, " STATEMENT_NOW " FROM (SELECT 0) LEFT JOIN dp_charge"
    " ON id = (SELECT max(id) FROM dp_charge)";

int64_t ledger_last_charge(struct ledger *ledger) {
  return statement_integer(ledger, select_last_charge, "");
}

int ledger_first_rate(struct ledger *ledger, int64_t release_id, double *rate) {
  sqlite3_stmt *row =
      statement_bind(ledger, "SELECT rate FROM dp_charge WHERE release_id = ? ORDER BY id LIMIT 1",
                     "i", release_id);
  if (!statement_row(ledger, row)) return 0;
  *rate = sqlite3_column_double(row, 0);
  return 1;
}

/* Returns the sum of all charges of a tier after the charge with this id, in the form of a
** budget. */
static struct budget budget_since(struct ledger *ledger, int64_t charge, const char *tier) {
  struct budget budget = {0};
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT rate, slack, delta, curve FROM dp_charge"
                                     " WHERE id > ? AND tier = ?",
                                     "is", charge, tier);
  while (statement_row(ledger, row)) {
    struct payment paid = payment_read(ledger, row);
    budget.rate = total_add(budget.rate, paid.rate.high);
    if (paid.curve.any) budget.curve += paid.curve.values[AT_FILTER];
    if (paid.curve.any) budget.pure += paid.curve.values[AT_INFINITY];
    if (paid.rate.high > 0) budget.pure = INFINITY;
    budget.slack += paid.slack;
    budget.delta += paid.delta;
  }
  return budget;
}

double ledger_charged_since(struct ledger *ledger, int64_t charge, const struct ledger_tier *tier) {
  struct budget budget = budget_since(ledger, charge, tier->name);
  return total_up(tier->accountant->total(tier, &budget));
}

int ledger_repeats(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                   int64_t charge, struct ledger_repeats *repeats) {
  *repeats = (struct ledger_repeats){.count = -1};
  for (int i = 0; i < count && !error_is_set(ledger->error); i++) {
    struct budget paid = budget_since(ledger, charge, tiers[i].name), spent;
    struct ledger_tier room;
    int read = ledger->grant ? reserve_read(ledger, &tiers[i], &room, &spent)
                             : budget_read(ledger, tiers[i].name, &spent) &&
                                   reserves_room(ledger, &tiers[i], 0, &room);
    double times = read ? budget_repeats(&room, &spent, &paid) : (double)INFINITY;
    if (isfinite(times) && (repeats->count < 0 || times < (double)repeats->count)) {
      repeats->count = (int64_t)fmin(times, (double)LEDGER_MOST_ROWS);
      repeats->tier = i;
    }
  }
  if (repeats->count >= 0)
    period_name(ledger, &tiers[repeats->tier], repeats->period, sizeof repeats->period);
  return !error_is_set(ledger->error);
}

/* ---- the hash chain -------------------------------------------------------------------------- */

void charge_hash(const char *previous, const struct charge *charge, char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  digest_text(&digest, previous);
  digest_typed(&digest, 0, charge->id, '\n');
  digest_typed(&digest, 0, charge->release_id, '\n');
  digest_text(&digest, charge->release);
  digest_text(&digest, charge->tier);
  digest_text(&digest, charge->subject);
  digest_bits(&digest, charge->tier_rate);
  digest_bits(&digest, charge->rate);
  digest_bits(&digest, charge->slack);
  digest_bits(&digest, charge->delta);
  digest_hexadecimal(&digest, charge->curve);
  digest_text(&digest, charge->at);
  digest_text(&digest, charge->period);
  digest_text(&digest, charge->grant_name);
  digest_text(&digest, charge->kind);
  digest_finish(&digest, hash);
}

static int charge_append(struct ledger *ledger, struct charge *charge) {
  sqlite3_stmt *last = statement_bind(ledger, select_last_charge, "");
  /* The subject of release ?1, and the period of tier ?2 in which a new charge counts. */
  sqlite3_stmt *row = statement_bind(
      ledger, "SELECT " SUBJECT("?1") ", (SELECT period_start FROM dp_budget WHERE tier = ?2)",
      "is", charge->release_id, charge->tier);
  if (!statement_row(ledger, last) || !statement_row(ledger, row)) return 0;
  int64_t id = sqlite3_column_int64(last, 0);
  if (id < 0 || id >= LEDGER_MOST_ROWS) id = ledger_fail_damaged(ledger, "dp_charge");
  charge->id = id + 1;
  if (!charge->at) charge->at = column_borrow(ledger, last, 2);
  charge->subject = column_borrow(ledger, row, 0);
  charge->period = column_borrow(ledger, row, 1);
  if (!charge->subject) ledger_fail_damaged(ledger, "dp_release");
  char hash[HASH_SIZE];
  charge->kind = charge->rate < 0 ? "return" : "charge";
  charge_hash(column_borrow(ledger, last, 1), charge, hash);
  statement_run(ledger, CHANGES_CHAIN,
                "INSERT INTO dp_charge(id, release_id, release, tier, rate,"
                " slack, delta, curve, at, period, grant_name, kind, hash)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                "iissdddbsssss", charge->id, charge->release_id, charge->release, charge->tier,
                charge->rate, charge->slack, charge->delta, charge->curve, charge->at,
                charge->period, charge->grant_name, charge->kind, hash);
  charge->at = charge->subject = charge->period = 0; /* they end with this call */
  return !error_is_set(ledger->error);
}

/* ---- charging -------------------------------------------------------------------------------- */

/* What one tier pays for a release, and its budget after the payment is admitted. */
struct bill {
  struct payment payment;
  struct budget budget;
};

static int is_free(const struct payment *payment) {
  return payment->rate.high == 0 && payment->delta == 0 && !payment->curve.any;
}

/* Adds a bill's payment to its budget, for the owner. Fails if it does not fit. */
static int owner_admits(struct ledger *ledger, const struct ledger_tier *tier, struct bill *bill,
                        int first) {
  const struct accountant *accountant = tier->accountant;
  const struct payment *payment = &bill->payment;
  if ((payment->curve.any && !accountant->covers_curves) ||
      (payment->rate.high > 0 && !accountant->covers_rates))
    return ledger_fail(ledger, "tier '%s' %s", tier->name, accountant->refusal);
  struct budget after = budget_after(&bill->budget, payment, first);
  struct ledger_tier room;
  if (!reserves_room(ledger, tier, 0, &room)) return 0;
  tier = &room;
  /* Advice: Use public `keys`, or a smaller `key_share`. */
  if (!(after.delta <= tier->delta_keys))
    return ledger_fail(ledger,
                       "tier '%s' would exceed its delta_keys of %g: this needs delta %g, and "
                       "%g is left (nothing was charged or read)",
                       tier->name, tier->delta_keys, payment->delta,
                       tier->delta_keys - bill->budget.delta);
  if (!budget_within(tier, &after))
    return accountant->refuse(ledger, tier, &bill->budget, &after, payment);
  bill->budget = after;
  return 1;
}

/* The same for the owner or for the grant of the connection. Whether a grant can pay depends only
** on the grant (grant.c). */
static int bill_admit(struct ledger *ledger, const struct ledger_tier *tier, struct bill *bill,
                      int first) {
  /* Advice: A tier with a delta then admits no Laplace noise: ext/ledger/policy.c tells why. */
  if (bill->payment.curve.any && tier->accountant->covers_rates && ledger_wider_factor(ledger) > 0)
    return ledger_fail(ledger,
                       "tier '%s' has %s, under which the wider unit of this ledger is protected "
                       "by Gaussian noise only (ask for \"mechanism\":\"gaussian\", or take a "
                       "tier with the accountant 'pure'; nothing was charged or read)",
                       tier->name, tier->accountant->title);
  if (!ledger->grant) return owner_admits(ledger, tier, bill, first);
  if (!reserve_pay(ledger, tier, &bill->payment)) return 0;
  bill->budget = budget_after(&bill->budget, &bill->payment, first);
  return ledger->overdrawn || budget_within(tier, &bill->budget) ||
         ledger_fail_damaged(ledger, "dp_reserve");
}

static struct payment paid_in(struct ledger *ledger, sqlite3_stmt *row) {
  struct payment paid = {{0, 0}, 0, 0, {0, {0}}};
  while (statement_row(ledger, row)) {
    struct payment one = payment_read(ledger, row);
    paid.rate = total_add(paid.rate, one.rate.high);
    paid.slack += one.slack;
    paid.delta += one.delta;
    curve_add(&paid.curve, &one.curve);
  }
  return paid;
}

/* If ?3 is not NULL, only the charges up to the one with this id count. */
static const char select_paid[] = "SELECT rate, slack, delta, curve FROM dp_charge"
                                  " WHERE release_id = ? AND tier = ? AND id <= ifnull(?3, id)";

struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier) {
  return paid_in(ledger, statement_bind(ledger, select_paid, "is", release_id, tier));
}

struct payment paid_until(struct ledger *ledger, int64_t release_id, const char *tier,
                          int64_t last) {
  return paid_in(ledger, statement_bind(ledger, select_paid, "isi", release_id, tier, last));
}

static int bill_make(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_release *release, const struct cost *cost,
                     struct bill *bill) {
  struct payment paid = paid_for(ledger, release->id, tier->name);
  struct curve curve = curve_of(cost, tier->filter_order);
  if (curve.any && isnan(curve.values[AT_FILTER])) /* NaN would be charged as 0 */
    return ledger_fail(ledger, "out of memory");
  double rate = total_missing(paid.rate, cost->rate);
  bill->payment = (struct payment){{rate, 0},
                                   rate > 0 ? fmax(0, release->slack - paid.slack) : 0,
                                   cost->delta,
                                   curve_missing(&curve, &paid.curve)};
  /* Whether a tier was charged for a release in the period that dp_budget holds for it. */
  int counted = statement_integer(ledger,
                                  "SELECT 1 FROM dp_charge c JOIN dp_budget b ON b.tier = c.tier"
                                  " WHERE release_id = ? AND c.tier = ?"
                                  " AND period IS period_start LIMIT 1",
                                  "is", release->id, tier->name) != 0;
  return budget_read(ledger, tier->name, &bill->budget) &&
         (is_free(&bill->payment) || bill_admit(ledger, tier, bill, !counted));
}

/* Appends a payment to the chain of charges, and writes the new budget. `at` null means now. */
static int bill_pay(struct ledger *ledger, const struct ledger_tier *tier, int64_t release_id,
                    const char *release, const char *at, const struct bill *bill) {
  const struct payment *payment = &bill->payment;
  unsigned char bytes[CURVE_BYTES];
  if (is_free(payment)) return 1;
  struct charge charge = {.release_id = release_id,
                          .release = release,
                          .tier = tier->name,
                          .tier_rate = tier->rate,
                          .rate = total_up(payment->rate),
                          .slack = payment->slack,
                          .delta = payment->delta,
                          .at = at,
                          .grant_name = ledger->grant};
  charge.curve = curve_bytes(&payment->curve, bytes);
  if (payment->curve.any) {
    struct curve total = orders_read(ledger, tier->name);
    curve_add(&total, &payment->curve);
    orders_write(ledger, tier->name, &total);
  }
  return charge_append(ledger, &charge) && budget_write(ledger, tier, &bill->budget);
}

/* ---- returns --------------------------------------------------------------------------------- */

/* Returns the rate of the innermost publication of a release at a tier or outside it, which the
** tier owes for it; or 0. */
static double owed_for(struct ledger *ledger, int64_t release_id, double tier_rate) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT max(p.rate) FROM dp_publication p JOIN dp_tier t"
                                     " ON t.name = p.tier WHERE release_id = ? AND t.rate <= ?",
                                     "id", release_id, tier_rate);
  return statement_row(ledger, row) ? sqlite3_column_double(row, 0) : 0;
}

/* Makes the return of one tier. A tier whose period has ended since gets nothing back: its budget
** of that period is closed. */
static int bill_return(struct ledger *ledger, const struct ledger_tier *tier,
                       const struct ledger_release *release, double slack, struct bill *bill) {
  struct payment paid = paid_for(ledger, release->id, tier->name);
  double owed = owed_for(ledger, release->id, tier->rate);
  double spare = owed > 0 ? total_spare(paid.rate, owed) : 0;
  /* What a tier was charged for a release in this period. */
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT sum(rate) FROM dp_charge c JOIN dp_budget b"
                                     " ON b.tier = c.tier WHERE release_id = ? AND c.tier = ?"
                                     " AND period IS period_start",
                                     "is", release->id, tier->name);
  double now = statement_row(ledger, row) ? sqlite3_column_double(row, 0) : 0;
  *bill = (struct bill){{{0, 0}, 0, 0, {0, {0}}}, {{0, 0}, 0, 0, 0, 0, 0}};
  if (!(spare > RETURN_ROUNDING * owed) || !(spare <= now)) return !error_is_set(ledger->error);
  double spare_slack = paid.slack > slack ? nextafter(paid.slack - slack, 0) : 0;
  bill->payment.rate.high = -spare;
  bill->payment.slack = 0 - spare_slack; /* SQLite would store -0 as 0, which has another hash */
  if (ledger->grant && !reserve_pay(ledger, tier, &bill->payment)) return 0;
  if (!budget_read(ledger, tier->name, &bill->budget)) return 0;
  bill->budget = budget_after(&bill->budget, &bill->payment, 0);
  return 1;
}

int ledger_return(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, double slack) {
  int changed = 0;
  char *asking = ledger->grant;
  if (!seal_trust_books(ledger)) return 0;
  for (int k = 0; k <= at && !error_is_set(ledger->error); k++) {
    struct bill bill;
    /* The grant that paid gets it back. The owner may finish what a grant has begun. */
    ledger->grant = statement_text(ledger,
                                   "SELECT grant_name FROM dp_charge WHERE release_id = ?"
                                   " AND tier = ? ORDER BY id DESC LIMIT 1",
                                   "is", release->id, tiers[k].name);
    if (bill_return(ledger, &tiers[k], release, slack, &bill) && !is_free(&bill.payment))
      changed = bill_pay(ledger, &tiers[k], release->id, release->name, 0, &bill);
    sqlite3_free(ledger->grant);
  }
  ledger->grant = asking;
  return !error_is_set(ledger->error) && (!changed || budgets_left(ledger, tiers, count));
}

/* ---- charges --------------------------------------------------------------------------------- */

static int is_cost(const struct cost *cost) {
  int sound = cost->rate >= 0 && isfinite(cost->rate) && cost->delta >= 0 && cost->delta < 1;
  struct curve curve = curve_of(cost, NAN);
  for (int i = 0; curve.any && i < RENYI_ORDERS; i++) sound = sound && curve.values[i] >= 0;
  return sound && (cost->rate > 0 || cost->curve);
}

/* Returns whether a tier has paid the whole cost of a publication that has not been made yet
** (path_prepay() in release/noise_path.c). Publications further out cost less, so it can have paid
** this amount only for this publication. */
static int is_prepaid(struct ledger *ledger, const struct ledger_release *release,
                      const struct ledger_tier *tier, const struct cost *cost) {
  uint64_t clock;
  struct payment paid = paid_for(ledger, release->id, tier->name);
  if (is_free(&paid)) return 0;
  struct curve curve = curve_of(cost, tier->filter_order);
  return total_missing(paid.rate, cost->rate) == 0 && !curve_missing(&curve, &paid.curve).any &&
         paid.delta >= cost->delta &&
         !ledger_publication_find(ledger, release->id, tier->name, &clock);
}

int ledger_charge(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, const struct cost *cost) {
  if (!seal_trust_books(ledger)) return 0;
  if (!is_cost(cost)) return ledger_fail(ledger, "a release cannot have rate %g", cost->rate);
  if (is_prepaid(ledger, release, &tiers[at], cost)) return !error_is_set(ledger->error);
  struct bill *bills = sqlite3_malloc64(sizeof *bills * (sqlite3_uint64)(at + 1));
  if (!bills) return ledger_fail(ledger, "out of memory");
  int changed = 0, admitted = periods_enter(ledger, tiers[at].rate, &changed);
  for (int k = 0; k <= at && admitted; k++) { /* check all tiers before charging any (L4) */
    admitted = bill_make(ledger, &tiers[k], release, cost, &bills[k]);
    changed |= admitted && !is_free(&bills[k].payment);
  }
  for (int k = 0; k <= at && admitted; k++)
    admitted = bill_pay(ledger, &tiers[k], release->id, release->name, 0, &bills[k]);
  sqlite3_free(bills);
  return admitted && (!changed || budgets_left(ledger, tiers, count));
}

/* ---- what a new tier inherits ---------------------------------------------------------------- */

/* The releases for which tier ?2 was charged, once for each period of the new tier ?1 in which such
** charges count, with the time and id of the last charge in this period; and whether the row is the
** first one of its period. */
/* clang-format off */
static const char select_inherited[] =
  "SELECT *, start IS NOT lag(start) OVER (ORDER BY start, release_id) FROM"
  " (SELECT release_id, release, max(id), at, start FROM (SELECT release_id, release, id, at,"
  " " PERIOD_START(TIER_PERIOD, COUNTED_AT) " AS start"
  " FROM dp_charge c JOIN dp_tier o ON o.name = c.tier WHERE c.tier = ?2)"
  " GROUP BY start, release_id) ORDER BY start, release_id";
/* clang-format on */

/* Charges the new tier for one release in one period: what the outer tier had paid by the end of
** this period, minus what the new tier has paid already. */
static int inherit(struct ledger *ledger, const struct ledger_tier *tier, const char *outer,
                   sqlite3_stmt *row) {
  struct bill bill;
  int64_t release_id = sqlite3_column_int64(row, 0);
  struct payment paid = paid_for(ledger, release_id, tier->name);
  struct payment cost = paid_until(ledger, release_id, outer, sqlite3_column_int64(row, 2));
  if (cost.curve.any) /* the two tiers have different filter orders, so use an upper bound */
    cost.curve.values[AT_FILTER] = renyi_curve_at(cost.curve.values, tier->filter_order);
  bill.payment = (struct payment){{total_missing(paid.rate, total_up(cost.rate)), 0},
                                  fmax(0, cost.slack - paid.slack),
                                  fmax(0, cost.delta - paid.delta),
                                  curve_missing(&cost.curve, &paid.curve)};
  return budget_read(ledger, tier->name, &bill.budget) && bill_admit(ledger, tier, &bill, 1) &&
         bill_pay(ledger, tier, release_id, column_borrow(ledger, row, 1),
                  column_borrow(ledger, row, 3), &bill);
}

/* A model to which dp_diffuse() added noise is charged as a rate, but its cost is proved for RDP
** only (models/models.h). A new tier whose accountant does not cover it may not inherit it. */
static int may_inherit(struct ledger *ledger, const struct ledger_tier *tier, const char *outer) {
  if (tier->accountant->covers_diffused_models) return 1;
  /* Finds a model that a tier has paid for and that has several publications. */
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT release FROM dp_charge c JOIN dp_release r"
                                     " ON r.id = release_id WHERE tier = ? AND r.kind = 'sgd'"
                                     " AND (SELECT count(*) FROM dp_publication p"
                                     " WHERE p.release_id = c.release_id) > 1 LIMIT 1",
                                     "s", outer);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  ledger_fail(ledger,
              "tier '%s' would see model '%s' with noise on top, which %s does not cover (use the "
              "accountant '%s')",
              tier->name, (const char *)sqlite3_column_text(row, 0), tier->accountant->title,
              accountants[0]->name);
  return 0;
}

int charge_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer) {
  if (!may_inherit(ledger, tier, outer)) return 0;
  /* The new charges are of the new tier, so they do not change these rows. */
  sqlite3_stmt *row = statement_bind(ledger, select_inherited, "ss", tier->name, outer);
  while (statement_row(ledger, row)) {
    const char *start = column_borrow(ledger, row, 4);
    if (tier->period && !start) return ledger_fail_damaged(ledger, "dp_charge.at");
    if (tier->period && sqlite3_column_int(row, 5)) period_enter(ledger, tier->name, start);
    inherit(ledger, tier, outer, row);
  }
  return !error_is_set(ledger->error);
}

/* ---- how a budget was spent, day by day ------------------------------------------------------ */

/* Every charge at a tier follows from a publication at this tier or outside it, or from a release
** that failed there. Its members can see the spent budget at any time, so they may also know the
** days of the charges. */

/* Each charge, and whether it is the first one of its period and the last one of its day. */
static const char select_days[] =
    "SELECT rate, slack, delta, curve, period, day, lag(id) OVER periods IS NULL,"
    " day IS NOT lead(day) OVER periods FROM (SELECT *, substr(at, 1, 10) AS day FROM dp_charge"
    " WHERE tier = ?) WINDOW periods AS (PARTITION BY period ORDER BY day, id)"
    " ORDER BY period, day, id";

static int days_read(struct ledger *ledger, const struct ledger_tier *tier,
                     int (*take)(void *context, const struct ledger_spending *spending),
                     void *context) {
  struct budget spent = {0};
  sqlite3_stmt *row = statement_bind(ledger, select_days, "s", tier->name);
  while (statement_row(ledger, row)) {
    struct payment payment = payment_read(ledger, row);
    if (sqlite3_column_int(row, 6)) spent = (struct budget){0};
    spent = budget_after(&spent, &payment, 0);
    struct ledger_spending spending = {tier->name, column_borrow(ledger, row, 4),
                                       column_borrow(ledger, row, 5), budget_used(tier, &spent)};
    if (sqlite3_column_int(row, 7) && !take(context, &spending))
      ledger_fail(ledger, "out of memory");
  }
  return !error_is_set(ledger->error);
}

int ledger_spending_read(struct ledger *ledger, const char *tier,
                         int (*take)(void *context, const struct ledger_spending *spending),
                         void *context) {
  struct ledger_tier *tiers, room;
  int count;
  ledger_tiers(ledger, &tiers, &count);
  int at = ledger_tier_find(ledger, tiers, count, tier);
  int done = at >= 0 && reserves_room(ledger, &tiers[at], &tiers[at], &room);
  if (done) tiers[at].pure_limit = room.pure_limit; /* a tier with a grant has one limit */
  done = done && days_read(ledger, &tiers[at], take, context);
  ledger_tiers_free(tiers, count);
  return done;
}
