/* fill.c: an extension with the SQL function fill(template), for test_template.py. */
#include "report/report.h"

SQLITE_EXTENSION_INIT1

sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error) {
  sqlite3_stmt *statement = 0;
  if (!error_is_set(error) && sqlite3_prepare_v2(facts, sql, -1, &statement, 0) != SQLITE_OK)
    error_set(error, "%s", sqlite3_errmsg(facts));
  return statement;
}

int facts_row(sqlite3_stmt *statement, struct error *error) {
  return statement && !error_is_set(error) && sqlite3_step(statement) == SQLITE_ROW;
}

static void fill(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct error error = {0};
  sqlite3 *db = sqlite3_context_db_handle(context);
  char *text = argc ? template_fill((const char *)sqlite3_value_text(*argv), db, &error) : 0;
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error(context, error_text(&error), -1);
  }
  error_clear(&error);
}

int sqlite3_fill_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  (void)message;
  SQLITE_EXTENSION_INIT2(api);
  return sqlite3_create_function_v2(db, "fill", 1, SQLITE_UTF8, 0, fill, 0, 0, 0);
}
