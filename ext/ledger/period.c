/*
** period.c: budgets by period. For example, a tier with the period 'month' has its whole budget in
** each calendar month, in UTC.
**
** A charge counts in the period in which it is made. dp_budget and dp_order hold the totals of the
** period that the tier has entered. When a later period has begun, period_enter() sets these totals
** to 0. All other code can therefore read a budget as if there were no periods. A tier never goes
** back to an earlier period, whatever the clock says.
**
** A tier pays for each part of a release's cost only once, over all periods. In each period the sum
** of the payments stays within the tier's limit. Over k periods the sum of the payments is
** therefore at most k times the limit. The k budgets together therefore act as one filter with k
** times the limit (accountant.h: composed).
** Tests: tests/ledger/test_periods.py
*/
#include "ledger/budget.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "ledger/seal.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

/*
** SQL for the number of periods of a kind from the period that begins on day `first` to the period
** that begins on day `last`, both included.
*/
#define MONTHS(day) "(12 * strftime('%Y', " day ") + strftime('%m', " day "))"
#define PERIODS(kind, first, last)                                                                 \
  "CAST(1 + CASE " kind " WHEN 'day' THEN julianday(" last ") - julianday(" first ")"              \
  " WHEN 'week' THEN (julianday(" last ") - julianday(" first ")) / 7"                             \
  " ELSE (" MONTHS(last) " - " MONTHS(                                                             \
      first) ")"                                                                                   \
             " / CASE " kind                                                                       \
             " WHEN 'month' THEN 1 WHEN 'quarter' THEN 3 ELSE 12 END END AS INTEGER)"

/*
** Finds a tier whose rate is at least this rate and whose period is over. Returns the name of
** the tier and the start of the period that has begun since.
*/
static const struct statement find_period_over = {
    .sql =
        "SELECT name, started FROM (SELECT name, rate, period_start,"
        " " PERIOD_START(
            "period", "'now'") " AS started FROM dp_tier JOIN dp_budget"
                               " ON tier = name)"
                               " WHERE rate >= ? AND started > ifnull(period_start, '') LIMIT 1"};
static const struct statement enter_period = {
    .sql = "UPDATE dp_budget SET period_start = ?2,"
           " period_end = " PERIOD_END(
               TIER_PERIOD,
               "?2") ","
                     " spent_epsilon = 0.0, remaining_epsilon = epsilon, spent_rate = 0.0,"
                     " spent_delta = 0.0, releases = 0, spent_high = 0.0, spent_low = 0.0,"
                     " spent_slack = 0.0, spent_curve = 0.0, spent_pure = 0.0"
                     " WHERE tier = ?1",
    .changes = CHANGES_BUDGET};
static const struct statement reset_orders = {
    .sql = "UPDATE dp_order SET curve = 0.0 WHERE tier = ?", .changes = CHANGES_CHAIN};
/*
** Counts the periods of a tier, from its creation or its first charge, whichever is earlier, to
** the period that dp_budget holds.
*/
static const struct statement select_count_of_periods = {
    .sql = "SELECT max(1, " PERIODS(
        "kind", "min(born, first)",
        "period_start") ") FROM (SELECT"
                        " t.period AS kind, " PERIOD_START(
                            "t.period", "created_at") " AS born, period_start,"
                                                      " ifnull((SELECT period FROM dp_charge WHERE "
                                                      "tier = t.name ORDER BY id LIMIT 1), '9999')"
                                                      " AS first FROM dp_tier t JOIN dp_budget ON "
                                                      "tier = name WHERE name = ?)"};
static const struct statement select_period = {
    .sql = "SELECT period_start FROM dp_budget WHERE tier = ?"};
/*
** Returns whether ?2 is the first day of a period of tier ?1. ?2 must be NULL if the tier has
** no periods.
*/
static const struct statement check_period = {.sql =
                                                  "SELECT ?2 IS " PERIOD_START(TIER_PERIOD, "?2")};

#define PERIOD_KINDS 5

/*
** The kinds of periods. overlaps[j] is the largest number of periods of kind j that can have a day
** in common with one period of this kind.
*/
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

/* ---- entering a period ----------------------------------------------------------------------- */

int period_enter(struct ledger *ledger, const char *tier, const char *start) {
  return statement_run(ledger, &enter_period, "ss", tier, start) &&
         statement_run(ledger, &reset_orders, "s", tier);
}

int periods_enter(struct ledger *ledger, double rate, int *entered) {
  sqlite3_stmt *row;
  while (statement_row(ledger, row = statement_bind(ledger, &find_period_over, "d", rate)))
    *entered |= period_enter(ledger, column_text(ledger, row, 0), column_borrow(ledger, row, 1));
  return !error_is_set(ledger->error);
}

static int is_over(struct ledger *ledger) {
  return statement_row(ledger, statement_bind(ledger, &find_period_over, "d", 0.0));
}

int ledger_enter_periods(struct ledger *ledger) {
  int entered = 0;
  if (is_over(ledger) && seal_trust_books(ledger) && periods_enter(ledger, 0, &entered))
    all_budgets_left(ledger);
  return !error_is_set(ledger->error);
}

int ledger_read_periods(struct ledger *ledger) {
  if (!is_over(ledger)) return !error_is_set(ledger->error);
  ledger_rollback(ledger);
  return ledger_begin_copy(ledger) && ledger_enter_periods(ledger);
}

void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size) {
  static const char *const months[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
  sqlite3_stmt *row = statement_bind(ledger, &select_period, "s", tier->name);
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
  return statement_text(ledger, statement_bind(ledger, &select_period, "s", tier));
}

int period_begins_on(struct ledger *ledger, const struct ledger_tier *tier, const char *start) {
  return statement_integer(ledger,
                           statement_bind(ledger, &check_period, "ss", tier->name, start)) != 0;
}

/* ---- what periods add up to ------------------------------------------------------------------ */

void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json) {
  if (!tier->period) return;
  double count = (double)statement_integer(
      ledger, statement_bind(ledger, &select_count_of_periods, "s", tier->name));
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
