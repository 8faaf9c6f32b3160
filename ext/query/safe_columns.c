/* safe_columns.c: see safe_columns.h. Tests: tests/query/test_question_rules.py */
#include "query/safe_columns.h"

#include "query/program.h"

SQLITE_EXTENSION_INIT3

/*
** Compiles a SELECT of columns and examines its program. If `is_generated` is 0, refuses columns
** that an authorizer of the host hides; otherwise refuses columns whose computation may fail.
*/
static int check_program(sqlite3 *db, const char *select, int is_generated, const char *table,
                         struct error *error) {
  struct allowed_functions functions;
  struct program program;
  const struct program_instruction *unsafe;
  int going = 1;
  program_read(&program, db, select);
  if (!program.count || allowed_functions_read(&functions, db) != SQLITE_OK) {
    going = error_set(error, "cannot read table '%s': %s", table, sqlite3_errmsg(db));
  } else if (!is_generated && program_makes_null(&program, 0)) {
    going = error_set(
        error, "an authorizer of the host hides a column of table '%s' (let the extension read it)",
        table);
  } else if (is_generated && (unsafe = program_unsafe(&program, &functions)) != 0) {
    going = error_set(error,
                      "a generated column of table '%s' is computed by %s, which may fail for "
                      "one row (make it STORED, or leave it out)",
                      table, unsafe->operation && unsafe->p4 ? unsafe->p4 : unsafe->name);
  }
  program_clear(&program);
  return going;
}

/* Returns whether the question reads column `column` of table `at` of the route. */
static int is_read(const struct route *route, const unsigned char *used, int at, int column) {
  const struct table_facts *facts = &route->tables[at];
  int is_last = at == route->count - 1;
  return (at == 0 && used[column]) || (at > 0 && column == facts->unique) ||
         (is_last ? column == route->unit : column == route->links[at]);
}

/*
** Checks the plain columns of a table (`is_generated` is 0), or the columns that SQLite computes
** when they are read (`is_generated` is 1).
*/
static int check_columns(sqlite3 *db, const struct route *route, const unsigned char *used, int at,
                         int is_generated, struct error *error) {
  const struct table_facts *facts = &route->tables[at];
  int count = 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  for (int i = 0; i < facts->count; i++)
    if (is_read(route, used, at, i) && facts->columns[i].is_virtual == is_generated)
      sqlite3_str_appendf(sql, "%s\"%w\"", count++ ? ", " : "SELECT ", facts->columns[i].name);
  if (!count && !is_generated && facts->rowid) {
    sqlite3_str_appendf(sql, "SELECT %s", facts->rowid);
    count = 1;
  }
  sqlite3_str_appendf(sql, " FROM main.\"%w\" NOT INDEXED", facts->name);
  char *text = sqlite3_str_finish(sql);
  int going = !text   ? error_set_memory(error)
              : count ? check_program(db, text, is_generated, facts->name, error)
                      : 1;
  sqlite3_free(text);
  return going;
}

int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error) {
  int going = 1;
  for (int i = 0; i < route->count && going; i++) {
    going = check_columns(db, route, used, i, 0, error);
    if (going) going = check_columns(db, route, used, i, 1, error);
  }
  return going;
}
