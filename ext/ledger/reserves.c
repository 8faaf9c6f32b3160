/*
** reserves.c: see reserves.h. grant.c explains why the filters stay valid.
** Tests: tests/ledger/test_grants.py, tests/functions/test_plan_values.py
*/
#include "ledger/reserves.h"

#include <math.h>

#include "ledger/accountant.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

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

/* ---- reserves -------------------------------------------------------------------------------- */

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
  if (!budget_within(&own, &spent)) return fail_used_up(ledger);
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

/* ---- releases ------------------------------------------------------------------------------ */

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
