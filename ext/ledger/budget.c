/*
** budget.c: reads tiers (dp_tier; tier.c creates and drops them), and reads and writes what they
** have spent (dp_budget, dp_order) and what grants have reserved of it (dp_reserve).
** Tests: tests/ledger/test_filters.py, tests/ledger/test_curves.py, tests/ledger/test_tiers.py,
** tests/ledger/test_grants.py, tests/functions/test_plan_values.py, tests/ledger/test_periods.py,
** tests/report/test_report.py
*/
#include "ledger/budget.h"

#include <math.h>
#include <sqlite3ext.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "ledger/accountant.h"
#include "ledger/statements.h"
#include "math/cost.h"

SQLITE_EXTENSION_INIT3

/* ---- the accountants ------------------------------------------------------------------------- */

const struct accountant *const accountants[] = {&accountant_rdp, &accountant_gdp, &accountant_pure,
                                                0};

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

/* ---- RDP curves ------------------------------------------------------------------------------ */

/*
** The ledger stores a curve as a blob of 115 little-endian doubles: the values at the 114 stored
** orders, followed by the value at the filter order.
*/

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
    /*
    ** The sum is exact if one term is 0. Otherwise the function raises the sum by one unit in the
    ** last place.
    */
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

/* ---- the tiers ------------------------------------------------------------------------------- */

static const struct statement select_tiers = {
    .sql = "SELECT name, rate, epsilon, delta, delta_keys, accountant, filter_order, rate_limit,"
           " pure_limit, slack_limit, period FROM dp_tier ORDER BY rate DESC"};

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
  sqlite3_stmt *row = statement_bind(ledger, &select_tiers, "");
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

static const struct statement select_budget = {
    .sql = "SELECT spent_high, spent_low, spent_slack, spent_delta, spent_curve, spent_pure,"
           " releases FROM dp_budget WHERE tier = ?"};
static const struct statement update_budget = {
    .sql = "UPDATE dp_budget SET spent_high = ?2, spent_low = ?3, spent_slack = ?4,"
           " spent_delta = ?5, releases = ?6, spent_rate = ?7, spent_epsilon = ?8,"
           " remaining_epsilon = max(0.0, epsilon - ?8), spent_curve = ?9, spent_pure = ?10"
           " WHERE tier = ?1",
    .changes = CHANGES_BUDGET};
static const struct statement select_orders = {
    .sql = "SELECT curve FROM dp_order WHERE tier = ? ORDER BY alpha"};
static const struct statement update_order = {
    .sql = "UPDATE dp_order SET curve = ? WHERE tier = ? AND alpha = ?", .changes = CHANGES_CHAIN};
static const struct statement select_standing = {
    .sql = "SELECT spent_epsilon, remaining_epsilon, releases_left FROM dp_budget"
           " WHERE tier = ?"};

int budget_read(struct ledger *ledger, const char *tier, struct budget *budget) {
  sqlite3_stmt *row = statement_bind(ledger, &select_budget, "s", tier);
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
  sqlite3_stmt *row = statement_bind(ledger, &select_orders, "s", tier);
  for (int i = 0; statement_row(ledger, row) && i < RENYI_ORDERS; i++) {
    curve.values[i] = sqlite3_column_double(row, 0);
    curve.any |= curve.values[i] > 0;
  }
  return curve;
}

int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve) {
  for (int i = 0; i < RENYI_ORDERS; i++)
    statement_run(ledger, &update_order, "dsd", curve->values[i], tier, renyi_order(i));
  return !error_is_set(ledger->error);
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

/*
** Returns the fraction of the tier's limits that was spent, at the order at which this fraction is
** smallest.
*/
static double budget_used(const struct ledger_tier *tier, const struct budget *budget) {
  double used = total_up(tier->accountant->total(tier, budget)) / tier->rate_limit;
  return fmin(used, budget->pure / tier->pure_limit); /* NaN if the limit is: then it is `used` */
}

double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve) {
  double epsilon = tier->accountant->epsilon(tier, total_up(budget->rate),
                                             curve && curve->any ? curve->values : 0);
  /*
  ** A tier within its limit has spent at most its epsilon. The computed epsilon can be slightly
  ** larger, because it is rounded up.
  */
  int is_margin = isfinite(epsilon) && epsilon > tier->epsilon && budget_within(tier, budget);
  return is_margin ? tier->epsilon : epsilon;
}

int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget) {
  struct curve curve = {0, {0}};
  if (budget->curve > 0) curve = orders_read(ledger, tier->name);
  return statement_run(ledger, &update_budget, "sddddidddd", tier->name, budget->rate.high,
                       budget->rate.low, budget->slack, budget->delta, budget->releases,
                       total_up(budget->rate), budget_epsilon(tier, budget, &curve), budget->curve,
                       budget->pure);
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
  sqlite3_stmt *row = statement_bind(ledger, &select_standing, "s", tier);
  if (!statement_row(ledger, row)) return 0;
  standing->spent_epsilon = sqlite3_column_double(row, 0);
  standing->remaining_epsilon = sqlite3_column_double(row, 1);
  standing->releases_left = sqlite3_column_int64(row, 2);
  return 1;
}

/* ---- what grants have reserved --------------------------------------------------------------- */

/* grant.c explains why the filters stay valid. */

#define RESERVE_COLUMNS                                                                            \
  "grant_name, reserved, spent, reserved_delta, spent_delta, charges, reserved_slack, "            \
  "spent_slack,"                                                                                   \
  " spent_high, spent_low, spent_curve"
/* If ?2 is not NULL, leaves out the grants whose own tier has a rate above ?2. */
static const struct statement select_reserves = {
    .sql = "SELECT " RESERVE_COLUMNS " FROM dp_reserve WHERE tier = ?1 AND (?2 IS NULL OR"
           " (SELECT t.rate FROM dp_grant g JOIN dp_tier t ON t.name = g.tier"
           " WHERE g.name = grant_name) <= ?2) ORDER BY grant_name"};
static const struct statement select_reserve = {
    .sql = "SELECT " RESERVE_COLUMNS " FROM dp_reserve WHERE grant_name = ? AND tier = ?"};
static const struct statement find_missing_reserve = {
    .sql =
        "SELECT " RESERVE_COLUMNS " FROM dp_reserve r WHERE NOT EXISTS (SELECT 1 FROM"
        " dp_reserve n WHERE n.grant_name = r.grant_name AND n.tier = ?1) AND tier = ?2 LIMIT 1"};
static const struct statement insert_reserve = {
    .sql = "INSERT INTO dp_reserve VALUES (?, ?, ?, 0, ?, 0, 0, ?, 0, 0, 0, 0)",
    .changes = CHANGES_BUDGET};
static const struct statement update_reserve = {
    .sql = "UPDATE dp_reserve SET spent = ?3, spent_high = ?4, spent_low = ?5,"
           " spent_slack = ?6, spent_delta = ?7, spent_curve = ?8, charges = ?9"
           " WHERE grant_name = ?1 AND tier = ?2",
    .changes = CHANGES_BUDGET};
static const struct statement select_charges_of_grant = {
    .sql = "SELECT rate, slack, delta, curve FROM dp_charge"
           " WHERE grant_name = ? AND tier = ? ORDER BY id"};

static const struct statement update_left = {
    .sql = "UPDATE dp_budget SET releases_left = ?2 WHERE tier = ?1", .changes = CHANGES_BUDGET};

/* A row of dp_reserve. The text is valid until the next step of the statement. */
struct reserve_row {
  const char *grant_name;
  double reserved, spent, reserved_delta, spent_delta;
  int64_t charges;
  double reserved_slack, spent_slack, spent_high, spent_low, spent_curve;
};

static struct reserve_row reserve_of(struct ledger *ledger, sqlite3_stmt *row) {
  return (struct reserve_row){
      column_text(ledger, row, 0),   sqlite3_column_double(row, 1), sqlite3_column_double(row, 2),
      sqlite3_column_double(row, 3), sqlite3_column_double(row, 4), sqlite3_column_int64(row, 5),
      sqlite3_column_double(row, 6), sqlite3_column_double(row, 7), sqlite3_column_double(row, 8),
      sqlite3_column_double(row, 9), sqlite3_column_double(row, 10)};
}

static struct budget spent_of(const struct reserve_row *row) {
  return (struct budget){.rate = {row->spent_high, row->spent_low},
                         .slack = row->spent_slack,
                         .delta = row->spent_delta,
                         .curve = row->spent_curve,
                         .releases = row->charges};
}

/*
** Returns a payment as the code adds it to the spent amounts of a grant. Components whose sums are
** doubles are slightly increased. The increase is larger than the rounding error of a sum that is
** at most the tier's limit.
*/
static struct payment paid_by_grant(const struct ledger_tier *tier, const struct payment *payment) {
  const double rounding = 0x1p-50;
  struct payment paid = *payment;
  double order = isfinite(tier->filter_order) ? tier->filter_order : 1;
  if (paid.curve.any) paid.curve.values[AT_FILTER] += tier->rate_limit * order * rounding;
  if (paid.delta > 0) paid.delta += tier->delta_keys * rounding;
  if (paid.slack > 0) paid.slack += tier->slack_limit * rounding;
  return paid;
}

/* Returns a copy of the tier whose limits are the amounts of a grant. */
static struct ledger_tier limited(const struct ledger_tier *tier, const struct reserve_row *row) {
  struct ledger_tier limited = *tier;
  limited.rate_limit = row->reserved;
  limited.pure_limit = NAN;
  limited.delta_keys = row->reserved_delta;
  limited.slack_limit = row->reserved_slack;
  return limited;
}

/* Returns reserved - spent, rounded up, or 0 if the difference is negative. */
static double left_up(double reserved, struct total spent) {
  double left = (reserved - spent.high) - spent.low;
  return left > 0 ? nextafter(left, INFINITY) : 0;
}

/* Returns the unspent amounts of a grant, rounded up. */
static struct held held_by(const struct ledger_tier *tier, const struct reserve_row *row) {
  struct budget spent = spent_of(row);
  return (struct held){left_up(row->reserved, tier->accountant->total(tier, &spent)),
                       left_up(row->reserved_delta, (struct total){spent.delta, 0}),
                       left_up(row->reserved_slack, (struct total){spent.slack, 0})};
}

static double below(double limit, double held) {
  double left = limit - held;
  return left > 0 ? nextafter(left, 0) : 0;
}

int reserves_room(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct ledger_tier *room) {
  sqlite3_stmt *row =
      statement_bind(ledger, &select_reserves, "sd", tier->name, own ? own->rate : (double)NAN);
  struct held held = {0, 0, 0};
  int any = 0;
  *room = *tier;
  while (statement_row(ledger, row)) {
    struct reserve_row stored = reserve_of(ledger, row);
    struct held more = held_by(tier, &stored);
    held.total = nextafter(held.total + more.total, INFINITY);
    held.delta = nextafter(held.delta + more.delta, INFINITY);
    held.slack = nextafter(held.slack + more.slack, INFINITY);
    any = 1;
  }
  if (any) {
    room->rate_limit = below(tier->rate_limit, held.total);
    room->pure_limit = NAN;
    room->delta_keys = below(tier->delta_keys, held.delta);
    room->slack_limit = below(tier->slack_limit, held.slack);
  }
  return !error_is_set(ledger->error);
}

static int fail_used_up(struct ledger *ledger) {
  return ledger_fail(ledger,
                     "grant '%s' has too little left for this (nothing was charged or read; the "
                     "table dp_reserve says what is left, a smaller weight costs less, and the "
                     "owner can give another grant)",
                     ledger->grant);
}

int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent) {
  sqlite3_stmt *row = statement_bind(ledger, &select_reserve, "ss", ledger->grant, tier->name);
  if (!statement_row(ledger, row)) return 0;
  struct reserve_row stored = reserve_of(ledger, row);
  *room = limited(tier, &stored);
  *spent = spent_of(&stored);
  return 1;
}

int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment) {
  struct ledger_tier own;
  struct budget spent;
  if (!reserve_read(ledger, tier, &own, &spent)) return fail_used_up(ledger);
  struct payment paid = paid_by_grant(tier, payment);
  spent = budget_after(&spent, &paid, payment->rate.high >= 0);
  if ((payment->curve.any && !tier->accountant->covers_curves) ||
      (payment->rate.high > 0 && !tier->accountant->covers_rates))
    return ledger_fail(ledger,
                       "grant '%s' does not cover noise of this kind (take another \"mechanism\"; "
                       "nothing was charged or read)",
                       ledger->grant);
  if (!budget_within(&own, &spent)) {
    if (!ledger->file) return fail_used_up(ledger);
    ledger->overdrawn = 1; /* a plan says what the release would be, and that it does not fit */
  }
  struct total total = tier->accountant->total(tier, &spent);
  return statement_run(ledger, &update_reserve, "ssddddddi", ledger->grant, tier->name,
                       total_up(total), spent.rate.high, spent.rate.low, spent.slack, spent.delta,
                       spent.curve, spent.releases);
}

/* ---- amounts --------------------------------------------------------------------------------- */

int reserves_left(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct held *left) {
  struct ledger_tier room;
  struct budget budget;
  if (!reserves_room(ledger, tier, own, &room) || !budget_read(ledger, tier->name, &budget))
    return 0;
  *left =
      (struct held){total_left(tier->accountant->total(&room, &budget), room.rate_limit),
                    below(room.delta_keys, budget.delta), below(room.slack_limit, budget.slack)};
  return 1;
}

struct held reserve_carried(const struct held *amount, const struct ledger_tier *outer,
                            const struct ledger_tier *inner) {
  double part = amount->total / outer->rate_limit * (1 + 0x1p-50);
  return (struct held){part * outer->accountant->most_at(outer, inner->filter_order),
                       inner->accountant->has_delta ? amount->delta : 0,
                       inner->accountant->reserve_slack ? part * inner->slack_limit : 0};
}

int reserve_insert(struct ledger *ledger, const char *grant, const struct ledger_tier *tier,
                   const struct held *amount) {
  return statement_run(ledger, &insert_reserve, "ssddd", grant, tier->name, amount->total,
                       amount->delta, amount->slack);
}

int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer) {
  struct ledger_tier room;
  struct budget budget;
  int any = 0;
  for (;;) { /* one grant in each round, because the statement that inserts would change the list */
    sqlite3_stmt *row =
        statement_bind(ledger, &find_missing_reserve, "ss", tier->name, outer->name);
    if (!statement_row(ledger, row)) break;
    struct reserve_row stored = reserve_of(ledger, row);
    struct held left = held_by(outer, &stored), own = reserve_carried(&left, outer, tier);
    reserve_insert(ledger, stored.grant_name, tier, &own);
    any = 1;
  }
  if (!any || error_is_set(ledger->error)) return !error_is_set(ledger->error);
  return reserves_room(ledger, tier, 0, &room) && budget_read(ledger, tier->name, &budget) &&
         (budget_within(&room, &budget) ||
          ledger_fail(ledger,
                      "tier '%s' would lack what the grants of tier '%s' reserve (a larger epsilon "
                      "does)",
                      tier->name, outer->name));
}

/* ---- releases -------------------------------------------------------------------------------- */

int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at) {
  double least = 0x1p52;
  for (int k = 0; k <= at; k++) {
    const struct accountant *accountant = tiers[k].accountant;
    struct budget budget;
    struct ledger_tier room;
    if (!budget_read(ledger, tiers[k].name, &budget) || !reserves_room(ledger, &tiers[k], 0, &room))
      return -1;
    double left = total_left(accountant->total(&room, &budget), room.rate_limit);
    least = fmin(least, floor(left / accountant->cost_of_rate(tiers[at].rate)));
    if (accountant->draws_left) least = fmin(least, accountant->draws_left(&room, &budget));
  }
  return (int64_t)fmax(least, 0);
}

int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int at = 0; at < count && !error_is_set(ledger->error); at++)
    statement_run(ledger, &update_left, "si", tiers[at].name, releases_left(ledger, tiers, at));
  return !error_is_set(ledger->error);
}

int all_budgets_left(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count)) budgets_left(ledger, tiers, count);
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

/* ---- verification ---------------------------------------------------------------------------- */

static int check_reserve(struct ledger *ledger, const struct ledger_tier *tier,
                         const struct reserve_row *row) {
  struct budget spent = {0};
  sqlite3_stmt *charge =
      statement_bind(ledger, &select_charges_of_grant, "ss", row->grant_name, tier->name);
  while (statement_row(ledger, charge)) {
    struct payment payment = {.rate = {sqlite3_column_double(charge, 0), 0},
                              .slack = sqlite3_column_double(charge, 1),
                              .delta = sqlite3_column_double(charge, 2),
                              .curve = curve_column(ledger, charge, 3)};
    payment = paid_by_grant(tier, &payment);
    spent = budget_after(&spent, &payment, payment.rate.high >= 0);
  }
  struct ledger_tier own = limited(tier, row);
  int same = row->spent_high == spent.rate.high && row->spent_low == spent.rate.low &&
             row->spent_slack == spent.slack && row->spent_delta == spent.delta &&
             row->spent_curve == spent.curve && row->charges == spent.releases &&
             row->spent == total_up(tier->accountant->total(tier, &spent));
  if (!same)
    return ledger_discrepancy(ledger, "dp_reserve: grant '%s' does not match its charges at '%s'",
                              row->grant_name, tier->name);
  return budget_within(&own, &spent) ||
         ledger_discrepancy(ledger, "dp_reserve: grant '%s' has spent more than it has at '%s'",
                            row->grant_name, tier->name);
}

int reserves_verify(struct ledger *ledger, const struct ledger_tier *tier) {
  sqlite3_stmt *row = statement_bind(ledger, &select_reserves, "s", tier->name);
  while (statement_row(ledger, row)) {
    struct reserve_row stored = reserve_of(ledger, row);
    check_reserve(ledger, tier, &stored);
  }
  return !error_is_set(ledger->error);
}

/* ---- how a budget was spent, day by day ------------------------------------------------------ */

/*
** Every charge at a tier follows from a publication at this tier or outside it, or from a release
** that failed there. The members of the tier can see the spent budget at any time, so they may also
** know the days of the charges.
*/

static const struct statement select_days = {
    .sql = "SELECT period, substr(at, 1, 10), rate, curve"
           " FROM dp_charge WHERE tier = ? ORDER BY 1, 2, id"};

static int days_read(struct ledger *ledger, const struct ledger_tier *tier,
                     int (*take)(void *context, const struct ledger_spending *spending),
                     void *context) {
  char *period = 0, *day = 0;
  struct budget spent = {0};
  int going = 1;
  sqlite3_stmt *row = statement_bind(ledger, &select_days, "s", tier->name);
  while (going) {
    int more = statement_row(ledger, row);
    int same_period = more && strcmp(period ? period : "", column_text(ledger, row, 0)) == 0;
    if (day && !(same_period && strcmp(day, column_text(ledger, row, 1)) == 0))
      going = take(context,
                   &(struct ledger_spending){tier->name, period, day, budget_used(tier, &spent)}) ||
              ledger_fail(ledger, "out of memory");
    if (!more || !going) break;
    struct payment payment = {.rate = {sqlite3_column_double(row, 2), 0},
                              .curve = curve_column(ledger, row, 3)};
    if (!same_period) spent = (struct budget){0};
    spent = budget_after(&spent, &payment, 0);
    sqlite3_free(period);
    sqlite3_free(day);
    period = column_copy(ledger, row, 0);
    day = column_copy(ledger, row, 1);
    going = day != 0;
  }
  sqlite3_free(period);
  sqlite3_free(day);
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
