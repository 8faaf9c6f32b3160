/*
** owner_query.h: the owner's query in a dp_release(). The internal aggregate dp_collect() collects
** the rows of the query.
*/
#ifndef DIFFUSE_QUERY_OWNER_QUERY_H
#define DIFFUSE_QUERY_OWNER_QUERY_H

#include "query/row_reader.h"

/* The checked text of a query, and the columns that the query must give. */
struct query {
  const char *sql;   /* belongs to the caller */
  int length;        /* the length of the text without a semicolon at its end */
  int columns;       /* the number of columns */
  const char *names; /* the names of the columns, for example "key, x, unit" */
  char *rows;        /* the name of a common table expression; it does not occur in the text */
};

/* The destination of the rows of a query. */
struct collection {
  struct rows *rows;
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a query runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no query runs */
};

/*
** Checks that the text is one SELECT that only reads and gives these columns. Returns 1, or 0 with
** the error set. The caller must call query_clear() in both cases.
*/
int query_open(struct query *query, sqlite3 *db, const char *sql, int columns, const char *names,
               struct error *error);
void query_clear(struct query *query);

/*
** Returns the text of a statement that passes the rows of the query to dp_collect(). The connection
** must have dp_collect(). `table` is a common table expression such as "name AS (...)," that is put
** before the query, or "". The caller frees the result with sqlite3_free(). Returns null when out
** of memory.
*/
char *query_text(const struct query *query, const char *table);

/*
** Runs a statement made by query_text() on the collector's connection. Returns SQLITE_DONE, or the
** result code of the error. Returns SQLITE_OK if the statement ended without a call of
** dp_collect(), because an authorizer of the host returned SQLITE_IGNORE for the function or for
** SELECT.
*/
int query_run(struct collector *collector, sqlite3_stmt *statement, struct collection *collection);

/* Sets the error for a result code of query_run(). Always returns 0. */
int query_error(const struct collector *collector, int rc, struct error *error);

/* Checks that the host lets a query call dp_collect(). Returns 1, or 0 with the error set. */
int query_check_collect(struct collector *collector, struct error *error);

/*
** Returns whether a name that EXPLAIN shows, such as "dp_collect(2)", is that of dp_collect() with
** this number of arguments.
*/
int query_is_collect(const char *called, int arguments);

/*
** Registers dp_collect() for a connection, once for each number of arguments. Returns an SQLite
** result code. Calls `retain` before each registration. SQLite calls `release` once for each
** registration when the connection closes. `retain` and `release` may be null.
*/
int query_register(struct collector *collector, void (*retain)(struct collector *collector),
                   void (*release)(void *collector));

#endif
