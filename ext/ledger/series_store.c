/*
** series_store.c: what the ledger keeps of a series: the periods that have been appended, the exact
** sums and the book of allowances.
** Tests: tests/release/test_series_crash.py, tests/release/test_series_secrets.py
*/
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement update_appended = {
    .sql = "UPDATE dp_release SET appended = ?2 WHERE id = ?1", .changes = CHANGES_RELEASE};
static const struct statement forget_secret = {
    .sql = "UPDATE dp_release SET secret = NULL WHERE id = ?", .changes = CHANGES_RELEASE};
static const struct statement delete_sums = {.sql = "DELETE FROM dp_exact WHERE release_id = ?",
                                             .changes = CHANGES_RELEASE};
static const struct statement delete_allowances = {
    .sql = "DELETE FROM dp_allowance WHERE release_id = ?", .changes = CHANGES_RELEASE};
static const struct statement insert_sum = {
    .sql = "INSERT INTO dp_exact(release_id, period, key, component, value) VALUES (?, ?, ?, ?, ?)",
    .changes = CHANGES_RELEASE};
static const struct statement select_sums = {
    .sql = "SELECT period, key, component, value FROM dp_exact WHERE release_id = ?"};
static const struct statement insert_allowance = {
    .sql = "INSERT INTO dp_allowance(release_id, part, units) VALUES (?, ?, ?)",
    .changes = CHANGES_RELEASE};
static const struct statement select_allowances = {
    .sql = "SELECT units FROM dp_allowance WHERE release_id = ? ORDER BY part"};
static const struct statement update_clipping = {
    .sql = "UPDATE dp_publication SET clipped = ?3, unclipped = ?4, unit_stddev = ?5"
           " WHERE release_id = ?1 AND tier = ?2",
    .changes = CHANGES_RELEASE};
static const struct statement select_today = {.sql = "SELECT date('now')"};
/* dp_budget.period_end is the first day after the period. */
static const struct statement find_budget_end = {
    .sql = "SELECT name, date(period_end, '-1 day') FROM dp_tier JOIN dp_budget ON tier = name"
           " WHERE rate >= ?1 AND period_end <= ifnull(?2, '9999')"
           " ORDER BY period_end, name LIMIT 1"};

int ledger_series_append(struct ledger *ledger, int64_t release_id, int appended) {
  return statement_run(ledger, &update_appended, "ii", release_id, (int64_t)appended);
}

int ledger_series_forget(struct ledger *ledger, int64_t release_id) {
  return statement_run(ledger, &forget_secret, "i", release_id) &&
         statement_run(ledger, &delete_sums, "i", release_id) &&
         statement_run(ledger, &delete_allowances, "i", release_id);
}

int ledger_publication_clipping(struct ledger *ledger, int64_t release_id, const char *tier,
                                struct ledger_clipping clipping) {
  return statement_run(ledger, &update_clipping, "isddd", release_id, tier, clipping.clipped,
                       clipping.unclipped, clipping.stddev);
}

/* ---- exact sums and allowances --------------------------------------------------------------- */

int ledger_exact_insert(struct ledger *ledger, int64_t release_id, const struct ledger_exact *sum) {
  return statement_run(ledger, &insert_sum, "issis", release_id, sum->period, sum->key,
                       (int64_t)sum->component, sum->value);
}

int ledger_exacts(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_exact *sum), void *context) {
  sqlite3_stmt *row = statement_bind(ledger, &select_sums, "i", release_id);
  while (statement_row(ledger, row)) {
    struct ledger_exact sum = {column_text(ledger, row, 0), column_text(ledger, row, 1),
                               sqlite3_column_int(row, 2), column_text(ledger, row, 3)};
    if (!take(context, &sum)) return ledger_fail_damaged(ledger, "dp_exact");
  }
  return !error_is_set(ledger->error);
}

int ledger_allowances(struct ledger *ledger, int64_t release_id,
                      int (*take)(void *context, const void *units, int size), void *context) {
  sqlite3_stmt *row = statement_bind(ledger, &select_allowances, "i", release_id);
  while (statement_row(ledger, row)) {
    struct bytes units = column_bytes(row, 0);
    if (!take(context, units.at, units.size)) return 0;
  }
  return !error_is_set(ledger->error);
}

int ledger_allowance_clear(struct ledger *ledger, int64_t release_id) {
  return statement_run(ledger, &delete_allowances, "i", release_id);
}

int ledger_allowance_insert(struct ledger *ledger, int64_t release_id, int part, const void *units,
                            int size) {
  return statement_run(ledger, &insert_allowance, "iib", release_id, (int64_t)part,
                       (struct bytes){units, size});
}

/* ---- days ------------------------------------------------------------------------------------ */

char *ledger_today(struct ledger *ledger) {
  return statement_text(ledger, statement_bind(ledger, &select_today, ""));
}

int ledger_budget_ends(struct ledger *ledger, double rate, const char *last, char **tier,
                       char **end) {
  sqlite3_stmt *row = statement_bind(ledger, &find_budget_end, "ds", rate, last);
  if (!statement_row(ledger, row)) return 0;
  *tier = column_copy(ledger, row, 0);
  *end = column_copy(ledger, row, 1);
  return 1;
}
