/* safe_columns.c: see safe_columns.h. */
#include "query/safe_columns.h"

#include <stdlib.h>
#include <string.h>

#include "query/allowed_functions.h"

SQLITE_EXTENSION_INIT3

/* Not here: Concat, whose result can be too big, and everything that this list has not heard of. */
static const char *const safe[] = {
    "Eq",         "Ne",         "Lt",           "Le",      "Gt",        "Ge",          "Integer",
    "Int64",      "Real",       "String8",      "Null",    "Copy",      "SCopy",       "Affinity",
    "Cast",       "ClrSubtype", "RealAffinity", "Add",     "Subtract",  "Multiply",    "Divide",
    "Remainder",  "BitAnd",     "BitOr",        "BitNot",  "ShiftLeft", "ShiftRight",  "And",
    "Or",         "Not",        "IsTrue",       "If",      "IfNot",     "IsNull",      "NotNull",
    "ZeroOrNull", "Goto",       "Noop",         "Explain", "Init",      "Transaction", "TableLock",
    "Halt",       "IfNullRow",  "Column",       "Rowid",   "ResultRow", "OpenRead",    "Rewind",
    "Next"};

/* Whether an instruction computes from values alone and raises no error. Calls are not here. */
static int instruction_is_safe(const char *name) {
  for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
    if (strcmp(safe[i], name) == 0) return 1;
  return 0;
}

/* Whether a call in a program, "name(arguments)", is of a safe function. */
static int call_is_safe(const struct allowed_functions *functions, const char *call) {
  char name[32];
  size_t length = call ? strcspn(call, "(") : 0;
  if (!length || length >= sizeof name) return 0;
  memcpy(name, call, length);
  name[length] = 0;
  return function_is_safe(functions, name);
}

/* Refuses a program that does what it must not. */
static int check_program(sqlite3 *db, const char *select, int is_generated, const char *table,
                         struct error *error) {
  struct allowed_functions functions;
  sqlite3_stmt *row = 0;
  char *sql = sqlite3_mprintf("EXPLAIN %s", select);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &row, 0) : SQLITE_NOMEM, rows = 0, going = 1;
  sqlite3_free(sql);
  if (rc == SQLITE_OK && is_generated) rc = allowed_functions_read(&functions, db);
  while (rc == SQLITE_OK && going && sqlite3_step(row) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const char *call = (const char *)sqlite3_column_text(row, 5);
    int is_call = name && (strcmp(name, "Function") == 0 || strcmp(name, "PureFunc") == 0);
    rows++;
    if (!name) {
      going =
          error_set(error, "an authorizer of the host hides EXPLAIN (let the extension use it)");
    } else if (!is_generated && strcmp(name, "Null") == 0) {
      going = error_set(error,
                        "an authorizer of the host hides a column of table '%s' (let the extension "
                        "read it)",
                        table);
    } else if (is_generated &&
               !(is_call ? call_is_safe(&functions, call) : instruction_is_safe(name))) {
      going =
          error_set(error,
                    "a generated column of table '%s' is computed by %s, which may fail for one "
                    "row (make it STORED, or leave it out)",
                    table, is_call && call ? call : name);
    }
  }
  if (rc != SQLITE_OK && going)
    going = error_set(error, "cannot read table '%s': %s", table, sqlite3_errmsg(db));
  rc = sqlite3_finalize(row);
  if (going && (rc != SQLITE_OK || !rows))
    going = error_set(error, "cannot read table '%s': %s", table, sqlite3_errmsg(db));
  return going;
}

/* Whether column `column` of the table at `at` is read. */
static int is_read(const struct route *route, const unsigned char *used, int at, int column) {
  const struct table_facts *facts = &route->tables[at];
  int is_last = at == route->count - 1;
  return (at == 0 && used[column]) || (at > 0 && column == facts->unique) ||
         (is_last ? column == route->unit : column == route->links[at]);
}

/* Checks the plain columns of a table, or those that are generated when they are read. */
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
