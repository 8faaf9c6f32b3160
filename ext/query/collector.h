/*
** collector.h: dp_collect(), the internal aggregate that passes the rows of a statement to the
** extension. This is faster than one sqlite3_step() for each row.
*/
#ifndef DIFFUSE_QUERY_COLLECTOR_H
#define DIFFUSE_QUERY_COLLECTOR_H

#include "query/row_reader.h"

/* The destination of the rows of a statement. */
struct collection {
  struct rows *rows;
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a statement runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no statement runs */
};

/*
** Runs a statement that calls dp_collect() on the collector's connection. Returns SQLITE_DONE, or
** the result code of the error. Returns SQLITE_OK if the statement ended without a call of
** dp_collect(), because an authorizer of the host returned SQLITE_IGNORE for the function or for
** SELECT.
*/
int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection);

/*
** Registers dp_collect() for a connection, once for each number of arguments. Returns an SQLite
** result code. Calls `retain` before each registration. SQLite calls `release` once for each
** registration when the connection closes. `retain` and `release` may be null.
*/
int collector_register(struct collector *collector, void (*retain)(struct collector *collector),
                       void (*release)(void *collector));

#endif
