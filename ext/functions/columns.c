/*
** columns.c: dp_column, a read-only table of the columns of all declared tables. The members of a
** tier need it to write questions, because a guarded connection does not have protected tables.
** Tests: tests/functions/test_statement_mistakes.py
*/
#include "base/row_table.h"
#include "functions/functions.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"
#include "query/policy_tables.h"
#include "query/public_marks.h"

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

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
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
    .fill = fill};
