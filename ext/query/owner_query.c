/* owner_query.c: see owner_query.h. */
#include "query/owner_query.h"

#include <string.h>

#include "functions/functions.h"

SQLITE_EXTENSION_INIT3

/*
** The statement is held to the rules for schemas, where the host knows them (SQLite 3.50):
** functions that are not for untrusted SQL cannot hide in a query. Older versions ignore the bit.
*/
#define PREPARE_FROM_DDL 0x20

/* ---- collecting rows ------------------------------------------------------------------------- */

/*
** dp_collect([key,] [x,] [unit]): usable only by the statement that is written around the owner's
** text, which must not contain the name; DIRECTONLY keeps it out of views that the text may use.
*/
#define COLLECT "dp_collect"

static void collect_step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct collection *collection = ((struct host *)sqlite3_user_data(context))->collecting;
  if (!collection || argc != collection->columns) {
    sqlite3_result_error(context, COLLECT ": for dp_release() only", -1);
    return;
  }
  if (rows_add(&collection->rows, argv)) sqlite3_result_error_nomem(context);
}

static void collect_final(sqlite3_context *context) {
  struct collection *collection = ((struct host *)sqlite3_user_data(context))->collecting;
  if (collection) collection->ended = 1;
  sqlite3_result_null(context);
}

/* ---- the query ------------------------------------------------------------------------------- */

static char *check_statement(const struct query *query, sqlite3_stmt *statement) {
  const char *sql = query->sql;
  char word[8];
  first_word(sql, word);
  if (!statement || sqlite3_stmt_isexplain(statement) || !sqlite3_stmt_readonly(statement) ||
      (strcmp(word, "SELECT") != 0 && strcmp(word, "WITH") != 0 && strcmp(word, "VALUES") != 0))
    return error_message("sql must be one SELECT that only reads");
  if (has_word(COLLECT, sql))
    return error_message("sql cannot use " COLLECT ", which is dp_release()'s own");
  if (sqlite3_bind_parameter_count(statement) > 0)
    return error_message("sql cannot have parameters (write the values into its text)");
  if (sqlite3_column_count(statement) != query->columns)
    return error_message("sql must give %d column%s (%s%s), not %d", query->columns,
                         query->columns > 1 ? "s" : "", query->names,
                         strstr(query->names, "unit") ? "" : "; the ledger protects rows",
                         sqlite3_column_count(statement));
  return 0;
}

/* Compiles the owner's text alone: it must be one statement of the right form. */
static char *check_text(struct query *query, sqlite3 *db) {
  sqlite3_stmt *statement = 0, *second = 0;
  const char *sql = query->sql, *tail = 0;
  char *error = 0;
  if (sqlite3_prepare_v3(db, sql, -1, PREPARE_FROM_DDL, &statement, &tail) != SQLITE_OK) {
    error = error_message("cannot compile sql: %s", sqlite3_errmsg(db));
  } else {
    error = check_statement(query, statement);
    if (!error && (sqlite3_prepare_v2(db, tail, -1, &second, 0) != SQLITE_OK || second))
      error = error_message("sql must be one statement, but more follows");
  }
  query->length = tail ? (int)(tail - sql) : 0;
  if (query->length > 0 && sql[query->length - 1] == ';') query->length--;
  sqlite3_finalize(second);
  sqlite3_finalize(statement); /* never stepped: there is no error to report */
  return error;
}

char *query_open(struct query *query, sqlite3 *db, const char *sql, int columns,
                 const char *names) {
  *query = (struct query){.sql = sql, .columns = columns, .names = names};
  char *error = check_text(query, db);
  if (error) return error;
  query->rows = sqlite3_mprintf("dp_rows");
  while (query->rows && has_word(query->rows, sql))
    query->rows = sqlite3_mprintf("%z_", query->rows);
  return query->rows ? 0 : error_message("out of memory");
}

void query_clear(struct query *query) {
  sqlite3_free(query->rows);
  query->rows = 0;
}

/* ---- running it ------------------------------------------------------------------------------ */

char *query_text(const struct query *query, const char *table) {
  /* The line break ends a comment at the end of the owner's text. */
  return sqlite3_mprintf("WITH %s %s(%s) AS (%.*s\n) SELECT " COLLECT "(%s) FROM %s", table,
                         query->rows, query->names, query->length, query->sql, query->names,
                         query->rows);
}

int query_run(struct host *host, sqlite3_stmt *statement, struct collection *collection) {
  int rc;
  collection->ended = 0;
  host->collecting = collection;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
  }
  host->collecting = 0;
  return rc == SQLITE_DONE && !collection->ended ? SQLITE_OK : rc;
}

#define HIDDEN "an authorizer of the host leaves out " COLLECT "() or SELECT"

char *query_check_collect(struct host *host) {
  struct collection nothing = {.columns = 1};
  sqlite3_stmt *statement = 0;
  char *error = 0;
  int rc = sqlite3_prepare_v2(host->db, "SELECT " COLLECT "(NULL) WHERE 0", -1, &statement, 0);
  if (rc == SQLITE_OK) rc = statement ? query_run(host, statement, &nothing) : SQLITE_OK;
  if (rc == SQLITE_OK) {
    error = error_message(HIDDEN " (let dp_release use them)");
  } else if (rc != SQLITE_DONE) {
    error = error_message("cannot call " COLLECT "(): %s", sqlite3_errmsg(host->db));
  }
  sqlite3_finalize(statement); /* whose error has been reported */
  return error;
}

char *query_error(struct host *host, int rc) {
  if (rc == SQLITE_OK) return error_message("the query failed: " HIDDEN " (the charge stays)");
  return error_message("the query failed: %s (the charge stays)", sqlite3_errmsg(host->db));
}

/* ---- registration ---------------------------------------------------------------------------- */

int query_register(struct host *host) {
  int rc = SQLITE_OK;
  for (int arity = 1; arity <= 3 && rc == SQLITE_OK; arity++)
    rc = sqlite3_create_function_v2(host->db, COLLECT, arity, PRIVATE_FUNCTION, host_retain(host),
                                    0, collect_step, collect_final, host_release_pointer);
  return rc;
}
