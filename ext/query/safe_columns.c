/*
** safe_columns.c: see safe_columns.h.
** Tests: tests/query/test_question_rules.py, tests/query/test_authorizers.py
*/
#include "query/safe_columns.h"

#include <string.h>

#include "query/limits.h"
#include "query/row_text.h"

SQLITE_EXTENSION_INIT3

/* ---- columns that are shown ------------------------------------------------------------------ */

static sqlite3_stmt *explained(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  char *text = sqlite3_mprintf("EXPLAIN %s", sql);
  if (text) sqlite3_prepare_v2(db, text, -1, &row, 0);
  sqlite3_free(text);
  if (!row) interrupt_pass_on(db);
  return row;
}

/*
** Compares two rows of EXPLAIN: everything but the comments and the fifth number, which tells of
** the names in the text. Nothing of SQLite's instructions is known here.
*/
static int is_same_row(sqlite3_stmt *one, sqlite3_stmt *other) {
  for (int i = 0; i < 5; i++) {
    const char *a = (const char *)sqlite3_column_text(one, i);
    const char *b = (const char *)sqlite3_column_text(other, i);
    if (!a || !b || strcmp(a, b) != 0) return 0;
  }
  return 1;
}

int column_is_shown(sqlite3 *db, const char *select, const char *nothing) {
  sqlite3_stmt *one = explained(db, select), *other = explained(db, nothing);
  int rc = SQLITE_ROW, same = 1;
  while (one && other && same && rc == SQLITE_ROW) {
    rc = sqlite3_step(one);
    same = sqlite3_step(other) == rc && (rc != SQLITE_ROW || is_same_row(one, other));
  }
  int shown = one && other && !same && (rc == SQLITE_ROW || rc == SQLITE_DONE);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) interrupt_pass_on(db);
  sqlite3_finalize(one); /* the errors are in `shown` */
  sqlite3_finalize(other);
  return shown;
}

/* ---- the columns of a question --------------------------------------------------------------- */

/* Returns whether the question reads column `column` of table `at` of the route. */
static int is_read(const struct route *route, const unsigned char *used, int at, int column) {
  const struct table_facts *facts = &route->tables[at];
  int is_last = at == route->count - 1;
  return (at == 0 && used[column]) || (at > 0 && column == facts->unique) ||
         (is_last ? column == route->unit : column == route->links[at]);
}

static int check_shown(sqlite3 *db, const struct table_facts *facts, const char *column,
                       struct error *error) {
  char *select = sqlite3_mprintf("SELECT \"%w\" FROM main.\"%w\" NOT INDEXED", column, facts->name);
  char *nothing = sqlite3_mprintf("SELECT NULL FROM main.\"%w\" NOT INDEXED", facts->name);
  int going = 1;
  if (!select || !nothing) {
    going = error_set_memory(error);
  } else if (!column_is_shown(db, select, nothing)) {
    going = error_set(error,
                      "an authorizer of the host hides column '%s' of table '%s' (let the "
                      "extension read it)",
                      column, facts->name);
  }
  sqlite3_free(select);
  sqlite3_free(nothing);
  return going;
}

/* Checks a column that SQLite computes when it is read. */
static int check_generated(sqlite3 *db, const struct table_facts *facts, int column,
                           struct error *error) {
  struct allowed_functions functions;
  sqlite3_stmt *row = 0;
  int found = 0, safe = 0;
  int rc = sqlite3_prepare_v2(db, "SELECT type, name, sql FROM main.sqlite_master", -1, &row, 0);
  while (rc == SQLITE_OK && !found && sqlite3_step(row) == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(row, 0);
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const char *sql = (const char *)sqlite3_column_text(row, 2);
    found = type && name && sql && strcmp(type, "table") == 0 &&
            sqlite3_stricmp(name, facts->name) == 0;
    if (found)
      safe = allowed_functions_read(&functions, db) == SQLITE_OK &&
             generated_column_is_safe(sql, column, &functions);
  }
  rc = sqlite3_finalize(row);
  if (rc != SQLITE_OK || !found)
    return error_set(error, "cannot read table '%s': %s", facts->name, sqlite3_errmsg(db));
  return safe || error_set(error,
                           "column '%s' of table '%s' is generated when it is read, and this may "
                           "fail for one row (make it STORED, or leave it out)",
                           facts->columns[column].name, facts->name);
}

int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error) {
  int going = 1;
  for (int at = 0; at < route->count && going; at++) {
    const struct table_facts *facts = &route->tables[at];
    for (int i = 0; i < facts->count && going; i++) {
      if (!is_read(route, used, at, i)) continue;
      going = check_shown(db, facts, facts->columns[i].name, error) &&
              (!facts->columns[i].is_virtual || check_generated(db, facts, i, error));
    }
    /* The rows of a unit come in the order of the rowid. */
    if (going && at == 0 && facts->rowid) going = check_shown(db, facts, facts->rowid, error);
  }
  return going;
}
