/*
** tables.c: reads the tables that the host may see (visible_tables.c).
** Tests: tests/ledger/test_ledger.py
*/
#include <string.h>

#include "ledger/audience.h"
#include "ledger/table_rows.h"

SQLITE_EXTENSION_INIT3

/*
** SQL for the ids of the releases with one name. Two partial indices find them: one for the
** discarded releases, and one for the others. The tables of publications, values and charges have
** an index on release_id, but none on the name of the release.
*/
#define IDS_OF_NAME                                                                                \
  "(SELECT id FROM dp_release WHERE name = ?%d AND state <> 'discarded'"                           \
  " UNION ALL SELECT id FROM dp_release WHERE name = ?%d AND state = 'discarded')"

/*
** Returns " AND <column> IS ?n" for each wanted column. `first` is the number of the first
** parameter. For the owner, some columns are expressions (ledger_table_sql()). For an audience, the
** inner SELECT already has these columns.
**
** For the owner, a condition on the name of a release comes with a condition on its id, which an
** index answers. An audience always reads all its rows: if it found one name faster, the time would
** show whether an inner tier has a release of this name.
*/
static char *conditions(const struct ledger *ledger, const struct ledger_table *table,
                        const int *wanted, int count, int first) {
  int is_release = table->columns == &columns_release;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, " ");
  for (int i = 0; i < count; i++) {
    const char *column = ledger_table_column(table, wanted[i] + 1);
    int is_name = !ledger->audience && strcmp(column, is_release ? "name" : "release") == 0;
    sqlite3_str_appendf(sql, " AND %s IS ?%d",
                        ledger->audience ? column : ledger_table_sql(table, wanted[i] + 1),
                        first + i);
    if (is_name)
      sqlite3_str_appendf(sql, " AND %s IN " IDS_OF_NAME, is_release ? "id" : "release_id",
                          first + i, first + i);
  }
  return sqlite3_str_finish(sql);
}

static char *select_all(const struct ledger_table *table, const char *where) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  for (int place = 1; ledger_table_column(table, place); place++)
    sqlite3_str_appendf(sql, "%s%s", place > 1 ? ", " : "", ledger_table_sql(table, place));
  sqlite3_str_appendf(sql, " FROM %s WHERE %s%s", table->columns->table,
                      table->shown ? table->shown : "1", where);
  if (table->order) sqlite3_str_appendf(sql, " ORDER BY %s", table->order);
  return sqlite3_str_finish(sql);
}

int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context) {
  int first = ledger->audience ? 2 : 1; /* for an audience, the first parameter is the tier */
  char *where = conditions(ledger, table, wanted, count, first);
  char *sql = !where             ? 0
              : ledger->audience ? audience_select(table, where)
                                 : select_all(table, where);
  sqlite3_free(where);
  if (!sql) return ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  if (ledger->audience && rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, 1, ledger->audience, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < count && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(row, first + i, values[i]);
  if (rc == SQLITE_OK) {
    while (ledger_goes_on(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
      if (!take(context, row, sqlite3_column_count(row))) {
        ledger_fail(ledger, "out of memory");
        break;
      }
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) ledger_fail_sqlite(ledger);
  sqlite3_finalize(row); /* an error is already recorded */
  return !error_is_set(ledger->error);
}
