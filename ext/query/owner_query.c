/* owner_query.c: see owner_query.h. */
#include "query/owner_query.h"

#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/*
** SQLITE_PREPARE_FROM_DDL of SQLite 3.52. SQLite then compiles a statement under the rules for
** schemas: a query can call no function that is DIRECTONLY, and if PRAGMA trusted_schema is off,
** only functions that are INNOCUOUS. Versions that do not know the flag ignore it.
*/
#define PREPARE_FROM_DDL 0x20

/* ---- collecting rows ------------------------------------------------------------------------- */

/*
** dp_collect([key,] [x,] [unit]) passes the rows of a query to the extension. Only the statement
** that the extension writes around the owner's text can call this function: the owner's text must
** not contain the name, and SQLite lets no view call a function that is DIRECTONLY.
*/
#define COLLECT      "dp_collect"
#define MOST_COLUMNS 18 /* 16 attributes of cross tables, x and the unit */

static void collect_step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (!collection || argc != collection->columns) {
    sqlite3_result_error(context, COLLECT ": for dp_release() only", -1);
    return;
  }
  if (!rows_add(collection->rows, argv)) sqlite3_result_error_nomem(context);
}

static void collect_final(sqlite3_context *context) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (collection) collection->ended = 1;
  sqlite3_result_null(context);
}

/* ---- the query ------------------------------------------------------------------------------- */

static int check_statement(const struct query *query, sqlite3_stmt *statement,
                           struct error *error) {
  const char *sql = query->sql;
  char word[8];
  first_word(sql, word);
  if (!statement || sqlite3_stmt_isexplain(statement) || !sqlite3_stmt_readonly(statement) ||
      (strcmp(word, "SELECT") != 0 && strcmp(word, "WITH") != 0 && strcmp(word, "VALUES") != 0))
    return error_set(error, "sql must be one SELECT that only reads");
  if (has_word(COLLECT, sql))
    return error_set(error, "sql cannot use " COLLECT ", which is dp_release()'s own");
  if (sqlite3_bind_parameter_count(statement) > 0)
    return error_set(error, "sql cannot have parameters (write the values into its text)");
  if (sqlite3_column_count(statement) != query->columns)
    return error_set(error, "sql must give %d column%s (%s%s), not %d", query->columns,
                     query->columns > 1 ? "s" : "", query->names,
                     strstr(query->names, "unit") ? "" : "; the ledger protects rows",
                     sqlite3_column_count(statement));
  return 1;
}

/*
** Compiles the owner's text alone, to check that the text is one statement that only reads and
** gives the right columns.
*/
static int check_text(struct query *query, sqlite3 *db, struct error *error) {
  sqlite3_stmt *statement = 0, *second = 0;
  const char *sql = query->sql, *tail = 0;
  int going = 1;
  if (sqlite3_prepare_v3(db, sql, -1, PREPARE_FROM_DDL, &statement, &tail) != SQLITE_OK) {
    going = error_set(error, "cannot compile sql: %s", sqlite3_errmsg(db));
  } else {
    going = check_statement(query, statement, error);
    if (going && (sqlite3_prepare_v2(db, tail, -1, &second, 0) != SQLITE_OK || second))
      going = error_set(error, "sql must be one statement, but more follows");
  }
  query->length = tail ? (int)(tail - sql) : 0;
  if (query->length > 0 && sql[query->length - 1] == ';') query->length--;
  sqlite3_finalize(second);
  sqlite3_finalize(statement); /* this statement never ran, so it has no error to report */
  return going;
}

int query_open(struct query *query, sqlite3 *db, const char *sql, int columns, const char *names,
               struct error *error) {
  *query = (struct query){.sql = sql, .columns = columns, .names = names};
  if (!check_text(query, db, error)) return 0;
  query->rows = sqlite3_mprintf("dp_rows");
  while (query->rows && has_word(query->rows, sql))
    query->rows = sqlite3_mprintf("%z_", query->rows);
  return query->rows ? 1 : error_set_memory(error);
}

void query_clear(struct query *query) {
  sqlite3_free(query->rows);
  query->rows = 0;
}

/* ---- running it ------------------------------------------------------------------------------ */

char *query_text(const struct query *query, const char *table) {
  /* The line break ends a comment at the end of the owner's text, if there is one. */
  return sqlite3_mprintf("WITH %s %s(%s) AS (%.*s\n) SELECT " COLLECT "(%s) FROM %s", table,
                         query->rows, query->names, query->length, query->sql, query->names,
                         query->rows);
}

int query_run(struct collector *collector, sqlite3_stmt *statement, struct collection *collection) {
  int rc;
  collection->ended = 0;
  collector->collecting = collection;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
  }
  collector->collecting = 0;
  return rc == SQLITE_DONE && !collection->ended ? SQLITE_OK : rc;
}

#define HIDDEN "an authorizer of the host leaves out " COLLECT "() or SELECT"

int query_check_collect(struct collector *collector, struct error *error) {
  struct collection nothing = {.columns = 1};
  sqlite3_stmt *statement = 0;
  int going = 1;
  int rc = sqlite3_prepare_v2(collector->db, "SELECT " COLLECT "(NULL) WHERE 0", -1, &statement, 0);
  if (rc == SQLITE_OK) rc = statement ? query_run(collector, statement, &nothing) : SQLITE_OK;
  if (rc == SQLITE_OK) {
    going = error_set(error, HIDDEN " (let dp_release use them)");
  } else if (rc != SQLITE_DONE) {
    going = error_set(error, "cannot call " COLLECT "(): %s", sqlite3_errmsg(collector->db));
  }
  sqlite3_finalize(statement); /* the error has been reported */
  return going;
}

int query_error(const struct collector *collector, int rc, struct error *error) {
  if (rc == SQLITE_OK) return error_set(error, "the query failed: " HIDDEN " (the charge stays)");
  return error_set(error, "the query failed: %s (the charge stays)", sqlite3_errmsg(collector->db));
}

int query_is_collect(const char *called, int arguments) {
  char name[32];
  sqlite3_snprintf(sizeof name, name, COLLECT "(%d)", arguments);
  return called && strcmp(called, name) == 0;
}

/* ---- registration ---------------------------------------------------------------------------- */

int query_register(struct collector *collector, void (*retain)(struct collector *collector),
                   void (*release)(void *collector)) {
  int rc = SQLITE_OK;
  for (int arity = 1; arity <= MOST_COLUMNS && rc == SQLITE_OK; arity++) {
    if (retain) retain(collector);
    /* If the registration fails, SQLite calls `release`. */
    rc = sqlite3_create_function_v2(collector->db, COLLECT, arity, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                    collector, 0, collect_step, collect_final, release);
  }
  return rc;
}
