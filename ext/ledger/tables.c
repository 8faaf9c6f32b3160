/*
** tables.c: owns the list of ledger tables that the host may read, and reads them.
**
** dp_path is not in the list, because its unpublished points are for the owner only. If an
** application showed these points to others, for example through a view, the outer tiers would lose
** their privacy.
*/
#include "ledger/audience.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/*
** Hides the values of failed and discarded releases, so that each name has one value. The file
** still contains the hidden values.
*/
#define LIVE "release_id NOT IN (SELECT id FROM dp_release WHERE state IN ('failed', 'discarded'))"

#define DISPLAY                                                                                    \
  "(SELECT display(r.kind, r.lo, key, stddev, value, low, high) FROM dp_release r"                 \
  " WHERE r.id = release_id)"

const struct ledger_table ledger_tables[] = {
    {&columns_tier, "dropped_at IS NULL", "rate DESC", 0, 0}, /* the innermost tier first */
    {&columns_release, 0, "rowid", 0, 0},
    {&columns_publication, LIVE, "rowid", 0, 0},
    {&columns_value, LIVE, "rowid", 0, DISPLAY},
    {&columns_charge, 0, "rowid", 0, 0},
    {&columns_policy, 0, "rowid", 0, 0},
    {&columns_rdp, 0, 0, 1, 0},
    {&columns_budget, 0, "rowid", 1, 0},
    {&columns_grant, 0, "rowid", 0, 0},
    {&columns_reserve, 0, "rowid", 0, 0},
};
const int ledger_table_count = sizeof ledger_tables / sizeof *ledger_tables;

char *ledger_table_declaration(const struct ledger_table *table) {
  char *columns = columns_declaration(table->columns);
  char *text =
      columns ? sqlite3_mprintf("%s%s", columns, table->display ? ", display TEXT" : "") : 0;
  sqlite3_free(columns);
  return text;
}

const char *ledger_table_column(const struct ledger_table *table, int place) {
  const struct column *column = columns_shown(table->columns, place);
  if (column) return column->name;
  int is_next = place == 1 || columns_shown(table->columns, place - 1);
  return is_next && table->display ? "display" : 0;
}

/*
** Returns " AND <column> IS ?" for each wanted column. For the owner, the column `display` is an
** expression. For an audience, the inner SELECT already has this column.
*/
static char *conditions(const struct ledger *ledger, const struct ledger_table *table,
                        const int *wanted, int count) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, " ");
  for (int i = 0; i < count; i++) {
    int stored = ledger->audience || columns_shown(table->columns, wanted[i] + 1);
    sqlite3_str_appendf(sql, " AND %s IS ?",
                        stored ? ledger_table_column(table, wanted[i] + 1) : table->display);
  }
  return sqlite3_str_finish(sql);
}

static char *select_all(const struct ledger_table *table, const char *where) {
  const char *column;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  for (int place = 1; (column = ledger_table_column(table, place)); place++)
    sqlite3_str_appendf(sql, "%s%s", place > 1 ? ", " : "",
                        columns_shown(table->columns, place) ? column : table->display);
  sqlite3_str_appendf(sql, " FROM %s WHERE %s%s", table->columns->table,
                      table->shown ? table->shown : "1", where);
  if (table->order) sqlite3_str_appendf(sql, " ORDER BY %s", table->order);
  return sqlite3_str_finish(sql);
}

/*
** Returns the text of the SELECT. For an audience, the first parameter of the SELECT is the tier.
*/
static char *select_text(const struct ledger *ledger, const struct ledger_table *table,
                         const int *wanted, int count) {
  char *where = conditions(ledger, table, wanted, count);
  char *sql = !where             ? 0
              : ledger->audience ? audience_select(table, where)
                                 : select_all(table, where);
  sqlite3_free(where);
  return sql;
}

int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context) {
  char *sql = select_text(ledger, table, wanted, count);
  if (!sql) return ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  int first = ledger->audience ? 2 : 1;
  if (ledger->audience && rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, 1, ledger->audience, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < count && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(row, first + i, values[i]);
  if (rc == SQLITE_OK) {
    while (interrupt_check(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
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
