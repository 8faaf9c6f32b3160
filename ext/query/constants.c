/* constants.c: see constants.h. Tests: tests/functions/test_statement_mistakes.py */
#include "query/constants.h"

#include <stdlib.h>

#include "query/allowed_functions.h"
#include "query/private_memory.h"

SQLITE_EXTENSION_INIT3

struct constants {
  struct private_memory memory;
  sqlite3 *db;
  struct allowed_functions functions;
};

/* Allows SELECT and the functions of questions. Everything else is no constant. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  const struct constants *constants = context;
  (void)first;
  (void)schema;
  (void)inner;
  if (action == SQLITE_SELECT) return SQLITE_OK;
  return action == SQLITE_FUNCTION && second && function_is_allowed(&constants->functions, second)
             ? SQLITE_OK
             : SQLITE_DENY;
}

int constants_open(struct constants **out, struct error *error) {
  struct constants *constants = *out = calloc(1, sizeof *constants);
  if (!constants) return error_set_memory(error);
  if (!private_memory_open(&constants->memory, &constants->db, error)) return 0;
  sqlite3_db_config(constants->db, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
  if (allowed_functions_read(&constants->functions, constants->db) != SQLITE_OK)
    return error_set_memory(error);
#ifndef SQLITE_CORE /* SQLite puts null for a function that it was built without */
  if (!sqlite3_api->set_authorizer)
    return error_set(error,
                     "this SQLite has no authorizer, without which no question is evaluated");
#endif
  if (sqlite3_set_authorizer(constants->db, authorize, constants) == SQLITE_OK) return 1;
  return error_set(error, "cannot limit what a question may do");
}

void constants_close(struct constants *constants) {
  if (!constants) return;
  sqlite3_close(constants->db);
  free(constants);
}

/* The parentheses make the text one expression, or an error. */
sqlite3_value *constants_value(struct constants *constants, const char *expression) {
  sqlite3_stmt *statement = 0;
  sqlite3_value *value = 0;
  char *sql = sqlite3_mprintf("SELECT (%s)", expression);
  if (sql && sqlite3_prepare_v2(constants->db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    value = sqlite3_value_dup(sqlite3_column_value(statement, 0));
  sqlite3_finalize(statement); /* constants_error() returns its error */
  sqlite3_free(sql);
  return value;
}

const char *constants_error(const struct constants *constants) {
  return sqlite3_errmsg(constants->db);
}
