/*
** range_readers.h: reads the rows of a table in ranges of rowids, on several connections to the
** same file (readers.h, S2, S5 and S6).
**
** The host's connection and further connections take one range after the other (rowid_ranges.h),
** and run a statement that reads only the rows of the range.
**
** Requirements:
**   S1  Every row of the query comes from exactly one range (direct_loop.h).
**   S3  A row gives the same result on every connection. The caller checks that the functions and
**       collations of each connection are SQLite's own. The readers copy the host's settings that
**       affect values.
**   S4  If S1, S2 or S3 cannot be shown, the query runs on the host's connection alone. The
**       published values are the same in both cases, because sums are exact integers in any order.
*/
#ifndef DIFFUSE_QUERY_RANGE_READERS_H
#define DIFFUSE_QUERY_RANGE_READERS_H

#include "query/readers.h"
#include "query/unit_map.h"

/* A query whose rows come from the rows of one table of main. */
struct range_query {
  const char *table; /* the name of the table */
  const char *rowid; /* a name of its rowid */
  const char *text;  /* the statement that reads the rows with rowids from ?1 to ?2 */
  int columns;       /* the number of columns that the statement passes to dp_collect() */
  void *context;     /* the first argument of the functions below */
  /* Returns whether a row gives the same result on the further connection `db` (S3). */
  int (*is_same)(void *context, sqlite3 *db);
  /*
  ** Opens the rows of a further connection, with the secret of the host's. Runs on the thread of
  ** this connection. If a map finds the units of the rows, it may be `map`. Returns 1, or 0 with
  ** the error set.
  */
  int (*open)(void *context, struct rows *rows, const struct secret *secret, struct unit_map *map,
              struct error *error);
  /* Sets the error for a result code of collector_run() on a connection. */
  void (*explain)(void *context, const struct collector *collector, int rc, struct error *error);
};

/*
** Reads all rows, and adds their sums to `rows`, which is open. Begins to read on the host's
** connection if the host has not begun yet. Sets *rc to SQLITE_DONE, or to the result code of the
** first error, with the error set. Returns 1, or 0 if the host must read alone (S4).
*/
int range_readers_run(struct readers *readers, const struct range_query *query, struct rows *rows,
                      int *rc, struct error *error);

#endif
