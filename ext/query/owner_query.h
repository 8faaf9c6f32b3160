/*
** owner_query.h: the owner's query of a dp_release(), whose rows an internal aggregate collects.
*/
#ifndef DIFFUSE_QUERY_OWNER_QUERY_H
#define DIFFUSE_QUERY_OWNER_QUERY_H

#include "functions/host.h"
#include "query/row_reader.h"

/* A text that has been checked, and what is wanted of it. */
struct query {
  const char *sql;   /* the caller's */
  int length;        /* of the statement in it */
  int columns;       /* its columns ... */
  const char *names; /* ... and what they are, as in "key, x, unit" */
  char *rows;        /* a name that the text does not use */
};

/* Where rows are collected while a query runs: host->collecting. */
struct collection {
  struct rows rows;
  int columns;
  int ended; /* dp_collect() has reached its end */
};

/*
** The text must be one SELECT that only reads and gives these columns. Returns null, or one
** sentence to be freed; query_clear() is due in either case.
*/
char *query_open(struct query *query, sqlite3 *db, const char *sql, int columns, const char *names);
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
int query_run(struct host *host, sqlite3_stmt *statement, struct collection *collection);

/* The sentence for that error. */
char *query_error(struct host *host, int rc);

/* Whether the host lets a query call dp_collect(). Returns null, or one sentence to be freed. */
char *query_check_collect(struct host *host);

/* Registers dp_collect() for the host's connection. Returns an SQLite code. */
int query_register(struct host *host);

#endif
