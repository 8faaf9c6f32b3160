/* public_marks.c: see public_marks.h. Tests: tests/functions/test_public_names.py */
#include "query/public_marks.h"

#include <string.h>

#include "noise/entropy.h"

SQLITE_EXTENSION_INIT3

/*
** Sets *found to whether a table has a mark. The schema of the file decides, because the caller's
** read transaction keeps it.
*/
static int find_mark(sqlite3 *db, const char *table, const char *mark, int *found,
                     struct error *error) {
  sqlite3_stmt *row = 0;
  char *sql = sqlite3_mprintf("SELECT 1 FROM main.sqlite_master WHERE type = 'trigger'"
                              " AND name = %Q AND lower(tbl_name) = lower(%Q)",
                              mark, table);
  *found = sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
           sqlite3_step(row) == SQLITE_ROW;
  int rc = sqlite3_finalize(row);
  int going = !sql   ? error_set_memory(error)
              : !row ? error_set(error, "cannot read the schema: %s", sqlite3_errmsg(db))
                     : rc == SQLITE_OK ||
                           error_set(error, "cannot read the schema: %s", sqlite3_errmsg(db));
  sqlite3_free(sql);
  return going;
}

/* Checks M1 for a table whose facts and definition were read. */
static int check(sqlite3 *db, const struct table_facts *facts, const char *definition,
                 const struct ledger_declaration *declaration, struct error *error) {
  int found;
  if (!find_mark(db, facts->name, declaration->mark, &found, error)) return 0;
  if (!found)
    /* Advice: A mark goes with its table when it is renamed, dumped or restored. A table that was
       made anew has none. */
    return error_set(error,
                     "'%s' is the name of a public table that has come to another table, which is "
                     "not public (if its rows tell nothing about anybody, dp_public('%s') again)",
                     facts->name, facts->name);
  return strcmp(definition, declaration->definition) == 0 ||
         error_set(error,
                   "public table '%s' has other columns than those that were declared, so it is "
                   "not public any more (if they tell nothing about anybody, dp_public('%s') "
                   "again)",
                   facts->name, facts->name);
}

int public_table_read(struct table_facts *facts, sqlite3 *db,
                      const struct ledger_declaration *declaration, struct error *error) {
  if (!table_facts_read(facts, db, declaration->table, error)) return 0;
  char *definition = table_definition(facts);
  int going = definition ? check(db, facts, definition, declaration, error)
                         : error_set_memory(error);
  sqlite3_free(definition);
  return going;
}

/* Writes a new mark. An authorizer of the host may ignore the statement without an error. */
static int write_new(struct ledger_declaration *declaration, sqlite3 *db, const char *table,
                     struct error *error) {
  sqlite3_uint64 number;
  int found = 0;
  if (!entropy_fill(&number, sizeof number))
    return error_set(error, "the system gave no random bytes");
  declaration->mark = sqlite3_mprintf("dp_public_%016llx", number);
  char *sql = sqlite3_mprintf("CREATE TRIGGER main.\"%w\" AFTER DELETE ON \"%w\" WHEN 0"
                              " BEGIN SELECT 0; END",
                              declaration->mark, table);
  int rc = declaration->mark && sql ? sqlite3_exec(db, sql, 0, 0, 0) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc == SQLITE_NOMEM) return error_set_memory(error);
  if (rc != SQLITE_OK)
    return error_set(error, "cannot mark table '%s' with a trigger: %s", table, sqlite3_errmsg(db));
  return find_mark(db, table, declaration->mark, &found, error) &&
         (found || error_set(error,
                             "cannot mark table '%s' with a trigger: an authorizer of the host "
                             "ignores it",
                             table));
}

int public_mark_write(struct ledger_declaration *declaration, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_declaration *stored,
                      struct error *error) {
  struct error reason = {0};
  declaration->definition = table_definition(facts);
  if (!declaration->definition) return error_set_memory(error);
  int holds = stored && check(db, facts, declaration->definition, stored, &reason);
  error_clear(&reason); /* what prevents reading the schema will also prevent writing a mark */
  if (!holds) return write_new(declaration, db, facts->name, error);
  declaration->mark = sqlite3_mprintf("%s", stored->mark);
  return declaration->mark ? 1 : error_set_memory(error);
}

void public_mark_drop(sqlite3 *db, const char *mark) {
  char *sql = sqlite3_mprintf("DROP TRIGGER IF EXISTS main.\"%w\"", mark);
  if (sql) sqlite3_exec(db, sql, 0, 0, 0);
  sqlite3_free(sql);
}
