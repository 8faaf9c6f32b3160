/*
** unit_map.h: finds the unit of each row of a protected table. A row names its unit in a column, or
** has a link to a row of another table that leads to the unit.
*/
#ifndef DIFFUSE_QUERY_UNIT_MAP_H
#define DIFFUSE_QUERY_UNIT_MAP_H

#include "query/policy_tables.h"
#include "query/row_reader.h"

struct known_link;

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

/*
** Starts a map for the rows of the first table of a route. The lookups run on `db` while a
** statement reads the rows, and see the same state of the database. The caller must call
** unit_map_close(), even after an error.
*/
int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error);
void unit_map_close(struct unit_map *map);

/*
** Makes rows_add() find the unit of each row with the map, and leave out rows that belong to no
** unit. The unit column of `rows` holds the unit or the link.
*/
void unit_map_use(struct unit_map *map, struct rows *rows);

#endif
