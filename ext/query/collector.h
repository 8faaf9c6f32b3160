/* collector.h: takes the rows of a statement. The internal aggregate dp_collect() passes them to
** rows_add(), which is faster than one sqlite3_step() for each row. A map finds the unit of
** each. */
#ifndef DIFFUSE_QUERY_COLLECTOR_H
#define DIFFUSE_QUERY_COLLECTOR_H

#include "query/row_reader.h"
#include "query/schema.h"

/* The destination of the rows of a statement. */
struct collection {
  struct rows *rows;
  /* Takes a row instead of rows_add(). Returns 0 when out of memory. Null: rows_add() */
  int (*take)(struct collection *collection, sqlite3_value **row);
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a statement runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no statement runs */
};

/* Runs a statement that calls dp_collect() on the collector's connection. Returns SQLITE_DONE, or
** the result code of the error. Returns SQLITE_OK if the statement ended without a call of
** dp_collect(), because an authorizer of the host returned SQLITE_IGNORE for the function or for
** SELECT. */
int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection);

/* Registers dp_collect() for a connection. Returns an SQLite result code. SQLite calls `release`
** once: when the connection closes, or if the registration fails. */
int collector_register(struct collector *collector, void (*release)(void *collector));

/* Registers dp_collect() on a connection of the extension, and returns its collector, which then
** owns the connection. Closes the connection and returns null when out of memory.
** private_collector_close() accepts null. */
struct collector *private_collector_new(sqlite3 *db);
void private_collector_close(struct collector *collector);

/* ---- the unit of each row -------------------------------------------------------------------- */

/* Finds the unit of each row of a protected table. A row names its unit in a column, or has a link
** to a row of another table that leads to the unit. */
struct unit_map {
  sqlite3 *db;
  sqlite3_stmt *lookup;     /* finds the unit to which the link ?1 leads; null: rows have no link */
  sqlite3_stmt *parents;    /* the query for the key and unit of every parent row; may be null */
  int is_whole;             /* `parents` has ended */
  struct known_link *known; /* a hash table with `room` entries, of which `count` are used */
  size_t room, count;
  int is_mixed; /* the entries are in an order that depends on a secret; 0: in the order of keys */
  enum collation collation;
  int by_row;     /* each row is a unit, so no column names the unit */
  int64_t number; /* the number of rows so far, if each row is a unit */
  int place;      /* the index of the column with the unit or the link */
  int rc;         /* SQLITE_OK, or the code with which a lookup failed */
};

/* Starts a map for the rows of the first table of a route. The lookups run on `db` while a
** statement reads the rows, and see the same state of the database. The caller must call
** unit_map_close(), even after an error. */
int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error);
void unit_map_close(struct unit_map *map);

/* Makes rows_add() find the unit of each row with the map, and leave out rows that belong to no
** unit. The unit column of `rows` holds the unit or the link. */
void unit_map_use(struct unit_map *map, struct rows *rows);

#endif
