/*
** owner_query.h: the owner's query in a dp_release(). An internal aggregate collects its rows.
*/
#ifndef DIFFUSE_QUERY_OWNER_QUERY_H
#define DIFFUSE_QUERY_OWNER_QUERY_H

#include "query/row_reader.h"

/* A checked text, and the columns that it must give. */
struct query {
  const char *sql;   /* belongs to the caller */
  int length;        /* length of the statement in it */
  int columns;       /* number of columns */
  const char *names; /* their names, as in "key, x, unit" */
  char *rows;        /* a name that does not occur in the text */
};

/* The destination of the rows of a query. */
struct collection {
  struct rows rows;
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a query runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no query runs */
};

/*
** Checks that the text is one SELECT that only reads and gives these columns. The caller must call
** query_clear() in either case.
*/
int query_open(struct query *query, sqlite3 *db, const char *sql, int columns, const char *names,
               struct error *error);
void query_clear(struct query *query);

/*
** The query, written so that it passes its rows to dp_collect(), which the connection must have.
** `table` is an SQL text "name AS (...)," to put before the query, or "". The caller frees the
** result with sqlite3_free(). Returns null when out of memory.
*/
char *query_text(const struct query *query, const char *table);

/*
** Runs such a statement on the connection of the host. Returns its result code: SQLITE_DONE, or an
** error. SQLITE_OK means that the statement ended without a call of dp_collect(), because an
** authorizer of the host returned SQLITE_IGNORE for the function.
*/
int query_run(struct collector *collector, sqlite3_stmt *statement, struct collection *collection);

/* Sets the error that belongs to a result code. */
int query_error(const struct collector *collector, int rc, struct error *error);

/* Whether the host lets a query call dp_collect(). */
int query_check_collect(struct collector *collector, struct error *error);

/*
** Registers dp_collect() for a connection. Returns an SQLite code. When the connection closes,
** SQLite calls `release` with the collector once for each registration. `release` may be null.
*/
int query_register(struct collector *collector, void (*retain)(struct collector *collector),
                   void (*release)(void *collector));

#endif
