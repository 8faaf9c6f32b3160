/*
** budget.c: reads and writes dp_budget and dp_order, the running totals of the tiers' payments.
** Tests: tests/ledger/test_filters.py
*/
#include "ledger/budget.h"

#include <math.h>

#include "ledger/accountant.h"
#include "ledger/statements.h"
#include "math/renyi.h"

SQLITE_EXTENSION_INIT3

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

double budget_used(const struct ledger_tier *tier, const struct budget *budget) {
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
