/*
** tables.c: owns what of the ledger the host may read, and the reading.
**
** dp_path is not here: unpublished points are the owner's, and reading them through a view that an
** application shows to others would void every outer tier.
*/
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* Values of live releases: one name has one value. The file keeps those of discarded ones. */
#define LIVE "release_id NOT IN (SELECT id FROM dp_release WHERE state IN ('failed', 'discarded'))"

const struct ledger_table ledger_tables[] = {
    {"dp_tier",
     "name TEXT, rate REAL, epsilon REAL, delta REAL, delta_keys REAL, accountant TEXT,"
     " filter_order REAL, rate_limit REAL, created_at TEXT",
     "dropped_at IS NULL"},
    {"dp_release",
     "id INTEGER, name TEXT, kind TEXT, mechanism TEXT, clip REAL, dimension INTEGER,"
     " granularity INTEGER, sensitivity INTEGER, weight REAL, slack REAL, options TEXT, keys TEXT,"
     " model TEXT, sql TEXT, tables TEXT, state TEXT, created_at TEXT",
     0},
    {"dp_publication",
     "release_id INTEGER, release TEXT, tier TEXT, clock INTEGER, rate REAL,"
     " shrink REAL, centre REAL, kernel TEXT, published_at TEXT",
     LIVE},
    {"dp_value",
     "release_id INTEGER, release TEXT, tier TEXT, key TEXT, component INTEGER,"
     " value REAL, stddev REAL, low REAL, high REAL",
     LIVE},
    {"dp_charge",
     "id INTEGER, release_id INTEGER, release TEXT, tier TEXT, rate REAL, curve BLOB,"
     " delta REAL, slack REAL, at TEXT, hash TEXT",
     0},
    {"dp_policy", "table_name TEXT, role TEXT, unit_column TEXT, parent TEXT, created_at TEXT", 0},
    {"dp_rdp", "tier TEXT, alpha REAL, spent REAL, allowed REAL", 0},
    {"dp_budget",
     "tier TEXT, epsilon REAL, delta REAL, spent_epsilon REAL, remaining_epsilon REAL,"
     " spent_rate REAL, spent_delta REAL, releases INTEGER, releases_left INTEGER",
     0},
};
const int ledger_table_count = sizeof ledger_tables / sizeof *ledger_tables;

/* Appends the names of the declaration "name TYPE, name TYPE", or only number `only` if >= 0. */
static void append_names(sqlite3_str *sql, const char *columns, int only) {
  for (int i = 0; columns; i++) {
    columns += strspn(columns, ", ");
    int length = (int)strcspn(columns, " ");
    if (only < 0) sqlite3_str_appendf(sql, "%s\"%.*s\"", i ? ", " : "", length, columns);
    if (only == i) sqlite3_str_appendf(sql, "\"%.*s\"", length, columns);
    columns = strchr(columns, ',');
  }
}

static char *select_text(const struct ledger_table *table, const int *wanted, int count) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  append_names(sql, table->columns, -1);
  sqlite3_str_appendf(sql, " FROM %s WHERE %s", table->name, table->shown ? table->shown : "1");
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(sql, " AND ");
    append_names(sql, table->columns, wanted[i]);
    sqlite3_str_appendall(sql, " IS ?");
  }
  /* An order that people expect: the order of events; tiers the innermost first. */
  sqlite3_str_appendall(sql, strcmp(table->name, "dp_tier") == 0  ? " ORDER BY rate DESC"
                             : strcmp(table->name, "dp_rdp") == 0 ? ""
                                                                  : " ORDER BY rowid");
  return sqlite3_str_finish(sql);
}

/* In a transaction. */
int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context) {
  char *sql = select_text(table, wanted, count);
  if (!sql) return ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  for (int i = 0; i < count && rc == SQLITE_OK; i++) rc = sqlite3_bind_value(row, i + 1, values[i]);
  if (rc == SQLITE_OK) {
    while (interrupt_check(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
      if (!take(context, row, sqlite3_column_count(row))) {
        ledger_fail(ledger, "out of memory");
        break;
      }
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) ledger_fail_sqlite(ledger);
  sqlite3_finalize(row); /* its error, if any, has just been recorded */
  return !error_is_set(ledger->error);
}
