/*
** quoted_names.c: see quoted_names.h.
**
** SQLite takes a name in double quotes for a text if no column has the name, but not a name in
** backticks. So the check compiles the statement again for each name in double quotes, with this
** name in backticks. (To turn SQLITE_DBCONFIG_DQS_DML off would end running statements.)
** Tests: tests/query/test_asked.py
*/
#include "query/quoted_names.h"

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

#define DONT_LOG 0x10 /* SQLITE_PREPARE_DONT_LOG of new versions; older ones ignore it */

/* Appends the name in double quotes from `at` to `end`, without its quotes. */
static void append_name(sqlite3_str *text, const char *at, const char *end, int doubles_backticks) {
  for (at++; at < end - 1; at++) {
    sqlite3_str_appendchar(text, 1 + (doubles_backticks && *at == '`'), *at);
    if (*at == '"') at++; /* the second of two */
  }
}

/* Checks one name in double quotes, from `at` to `end`. */
static int check_name(sqlite3 *db, const char *sql, const char *at, const char *end,
                      struct error *error) {
  sqlite3_stmt *statement = 0;
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_append(text, sql, (int)(at - sql));
  sqlite3_str_appendall(text, "`");
  append_name(text, at, end, 1);
  sqlite3_str_appendf(text, "`%s", end);
  char *other = sqlite3_str_finish(text);
  int rc = other ? sqlite3_prepare_v3(db, other, -1, DONT_LOG, &statement, 0) : SQLITE_NOMEM;
  sqlite3_finalize(statement); /* it never ran */
  sqlite3_free(other);
  if (rc == SQLITE_OK) return 1;
  if (rc == SQLITE_NOMEM) return error_set_memory(error);
  if (rc != SQLITE_ERROR) return error_set(error, "cannot read the schema: %s", sqlite3_errmsg(db));
  text = sqlite3_str_new(0);
  append_name(text, at, end, 0);
  char *name = sqlite3_str_finish(text);
  error_set(error,
            "there is no column \"%s\", and SQLite takes the name for a text (correct it, or write "
            "a text in single quotes)",
            name ? name : "");
  sqlite3_free(name);
  return 0;
}

int quoted_names_check(sqlite3 *db, struct error *error) {
  int sound = 1;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    const char *sql = statement_is_executing(s) ? sqlite3_sql(s) : "", *end;
    for (const char *at = sql; *at && sound; at = end) {
      end = sql_token_end(at);
      if (*at == '"') sound = check_name(db, sql, at, end, error);
    }
  }
  return sound;
}
