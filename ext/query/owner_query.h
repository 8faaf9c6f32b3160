/*
** owner_query.h: the owner's query of a dp_release(), whose rows an internal aggregate collects.
*/
#ifndef DIFFUSE_QUERY_OWNER_QUERY_H
#define DIFFUSE_QUERY_OWNER_QUERY_H

#include "query/row_reader.h"

/* A text that has been checked, and what is wanted of it. */
struct query {
  const char *sql;   /* the caller's */
  int length;        /* of the statement in it */
  int columns;       /* its columns ... */
  const char *names; /* ... and what they are, as in "key, x, unit" */
  char *rows;        /* a name that the text does not use */
};

/* Where the rows of a query are collected. */
struct collection {
  struct rows rows;
  int columns;
  int ended; /* dp_collect() has reached its end */
};

/* A connection that has dp_collect(), and where its rows go while a query runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null: no query runs */
};

/*
** The text must be one SELECT that only reads and gives these columns. query_clear() is due in
** either case.
*/
int query_open(struct query *query, sqlite3 *db, const char *sql, int columns, const char *names,
               struct error *error);
void query_clear(struct query *query);

/*
** The query with its rows going to dp_collect(), which the connection must have; `table`: an SQL
** text that stands before it as "name AS (...),", or "". To be freed by sqlite3_free(); null
** without memory.
*/
char *query_text(const struct query *query, const char *table);

/*
** Runs such a statement on the connection of the host. Returns its result code: SQLITE_DONE, or an
** error. SQLITE_OK: it ended without dp_collect(), because an authorizer that answers SQLITE_IGNORE
** has left the function out.
*/
int query_run(struct collector *collector, sqlite3_stmt *statement, struct collection *collection);

/* Sets the error for that code. */
int query_error(const struct collector *collector, int rc, struct error *error);

/* Whether the host lets a query call dp_collect(). */
int query_check_collect(struct collector *collector, struct error *error);

/*
** Registers dp_collect() for a connection. Returns an SQLite code. `release` is called with the
** collector as often as there are registrations, when the connection closes; or null.
*/
int query_register(struct collector *collector, void (*retain)(struct collector *collector),
                   void (*release)(void *collector));

#endif
