/*
** ledger_tables.c: the ledger's tables on the host connection, and the columns of declared tables,
** as read-only eponymous virtual tables.
**
**   T1 All rows are copied when the reading begins (V1 in sql_functions.h). Otherwise
**       SELECT dp_diffuse(name, 'public') FROM dp_release would read the rows that it writes.
**   T2 The tables are not DIRECTONLY, so that stored views may read the ledger.
** Tests: tests/ledger/test_files.py, tests/report/test_export.py,
** tests/functions/test_statement_mistakes.py
*/
#include "base/sql_functions.h"
#include "functions/functions.h"
#include "functions/tier_guard.h"
#include "ledger/ledger.h"
#include "ledger/policy.h"
#include "query/in_operators.h"
#include "query/policy_tables.h"
#include "query/public_marks.h"

SQLITE_EXTENSION_INIT3

/* The context of a table: the table of the ledger, and a counted reference to the host. */
struct shown_table {
  struct host *host;
  const struct ledger_table *source;
};

static int take_row(void *context, sqlite3_stmt *row, int columns) {
  int going = 1;
  for (int i = 0; i < columns && going; i++)
    going = row_value(context, sqlite3_value_dup(sqlite3_column_value(row, i)));
  return going;
}

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  const struct shown_table *table = context;
  struct ledger *ledger = table->host->session.ledger;
  struct tier_guard *guard = table->host->guard;
  sqlite3_value *values[ROW_MOST_ARGUMENTS];
  int wanted[ROW_MOST_ARGUMENTS], count = 0, is_mixed = 0;
  for (int i = 0; i < ROW_MOST_ARGUMENTS; i++) {
    if (!arguments[i]) continue;
    if (!ledger_table_finds(table->source, i, arguments[i])) { /* SQLite compares all rows */
      is_mixed = 1;
      continue;
    }
    values[count] = arguments[i];
    wanted[count++] = i;
  }
  /* SQLite would lose rows (is_in() in sql_functions.c). */
  if (is_mixed && runs_hidden_in(table->host->collector.db))
    return error_set(error, "row values with IN must have the types of the columns here (use "
                            "EXISTS)");
  if (!tier_guard_enter(guard, 0, error)) return 0;
  int read = ledger_ready(ledger) && ledger_begin_reading(table->host->session.ledger) &&
             (!table->source->by_period || ledger_read_periods(ledger)) &&
             ledger_table_read(ledger, table->source, wanted, values, count, take_row, rows);
  ledger_rollback(ledger);
  tier_guard_leave(guard);
  return read || error_set(error, "%s", error_text(ledger_error(ledger)));
}

static void forget(void *context) {
  host_release(((struct shown_table *)context)->host);
  sqlite3_free(context);
}

int tables_register(sqlite3 *db, struct host *host) {
  int rc = SQLITE_OK;
  for (int i = 0; i < ledger_table_count && rc == SQLITE_OK; i++) {
    const struct ledger_table *source = &ledger_tables[i];
    char *columns = ledger_table_declaration(source);
    struct shown_table *shown = columns ? sqlite3_malloc(sizeof *shown) : 0;
    struct row_table table = {.name = source->name,
                              .columns = columns,
                              .is_searched = 1,
                              .estimate = 1000,
                              .cost = 1000,
                              .fill = fill};
    while (source->columns[table.count].name) table.count++;
    table.most = table.count < ROW_MOST_ARGUMENTS ? table.count : ROW_MOST_ARGUMENTS;
    if (shown) *shown = (struct shown_table){host_retain(host), source};
    rc = shown ? row_table_register(db, &table, shown, forget) : SQLITE_NOMEM;
    sqlite3_free(columns);
  }
  return rc;
}

/* ---- dp_column, the columns of all declared tables ------------------------------------------- */

/*
** The members of a tier need it to write questions, because a guarded connection does not have
** protected tables.
*/

/*
** Adds the columns of a declared table. A table that no longer exists has none, and neither has a
** public table that is not the one that was declared.
*/
static int add_columns(struct row_list *rows, sqlite3 *db,
                       const struct ledger_declaration *declared, struct error *error) {
  struct table_facts facts = {0};
  struct error missing = {0};
  int found = declared->role == POLICY_PUBLIC
                  ? public_table_read(&facts, db, declared, &missing)
                  : table_facts_read(&facts, db, declared->table, &missing);
  int going = !error_is_memory(&missing) || error_set_memory(error);
  for (int i = 0; found && i < facts.count && going; i++)
    going = row_text(rows, facts.name) && row_text(rows, facts.columns[i].name) &&
            row_text(rows, facts.columns[i].type) &&
            row_text(rows, declared->role == POLICY_PUBLIC ? "public" : "protected");
  table_facts_clear(&facts);
  error_clear(&missing);
  return going;
}

static int columns_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  (void)arguments;
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  struct ledger_policy policy = {0};
  sqlite3 *db = host->guard ? host->guard->reader->db : host->collector.db;
  int going =
      ledger_ready(ledger) && ledger_begin_reading(ledger) && ledger_policy_read(ledger, &policy);
  ledger_rollback(ledger);
  if (!going) error_set(error, "%s", error_text(ledger_error(ledger)));
  for (int i = 0; i < policy.count && going; i++)
    going = add_columns(rows, db, &policy.list[i], error);
  ledger_policy_free(&policy);
  return going;
}

const struct row_table column_table = {
    .name = "dp_column",
    .columns = "table_name TEXT, column_name TEXT, declared_type TEXT, role TEXT",
    .count = 4,
    .estimate = 1000,
    .cost = 1000,
    .fill = columns_fill};
