/*
** range_readers.h: reads the rows of a table on several connections to the same file. Each
** connection has a thread of its own.
**
** The readers divide the rows of the table by rowid into ranges. The ranges together hold all
** integers, and each integer is in one of them. The host's connection and further connections take
** one range after the other, and run a statement that reads only the rows of the range.
**
** Requirements:
**   S1  Every row of the query comes from exactly one range. The caller proves this (scan.h,
**       direct_loop.h).
**   S2  All connections see one state of one file. The host has no transaction when the further
**       connections are opened. Each of them reads PRAGMA data_version before the host begins to
**       read, and again afterwards in its own transaction. Equal versions show that nobody has
**       committed in between. The host itself must have changed nothing since. The readers also
**       check that the file has not been moved. The further connections cannot write.
**   S3  A row gives the same result on every connection. The caller proves that the programs are
**       equal and use no function and no collation that the host may have replaced. The readers
**       copy the host's settings that affect values. That the host has not replaced the collation
**       BINARY is not proved.
**   S4  If S1, S2 or S3 cannot be proved, the query runs on the host's connection alone. The
**       published values are the same in both cases, because sums are exact integers in any order.
**   S5  An interrupt or the progress handler of the host ends the query on every connection.
*/
#ifndef DIFFUSE_QUERY_RANGE_READERS_H
#define DIFFUSE_QUERY_RANGE_READERS_H

#include "query/owner_query.h"
#include "query/unit_map.h"

/* A query whose rows come from the rows of one table of main. */
struct range_query {
  const char *table; /* the name of the table */
  const char *rowid; /* a name of its rowid */
  const char *text;  /* the statement that reads the rows with rowids from ?1 to ?2 */
  int columns;       /* the number of columns that the statement passes to dp_collect() */
  void *context;     /* the first argument of the functions below */
  /* Returns whether a row gives the same result on the further connection `db` (S3). */
  int (*is_proved)(void *context, sqlite3 *db);
  /*
  ** Opens the rows of a further connection. Runs on the thread of this connection. If a map finds
  ** the units of the rows, it may be `map`. Returns 1, or 0 with the error set.
  */
  int (*open)(void *context, struct rows *rows, struct unit_map *map, struct error *error);
  /* Sets the error for a result code of query_run() on a connection. */
  void (*explain)(void *context, const struct collector *collector, int rc, struct error *error);
};

struct readers;

/*
** Opens as many further connections to the host's file as PRAGMA threads allows. The caller must
** call this function before the host begins to read. Returns null if the host must read alone.
*/
struct readers *readers_open(struct collector *host);
void readers_close(struct readers *readers); /* `readers` may be null */

/*
** Prepares all connections for a query, after the host has begun to read or at the last moment
** before. `rows` is open and takes the sums. Returns 1, or 0 if the host must read alone (S4).
*/
int readers_settle(struct readers *readers, const struct range_query *query, struct rows *rows);

/*
** Reads all rows, and adds the sums of all connections to the `rows` of readers_settle(). Returns
** SQLITE_DONE, or the result code of the first error, with the error set.
*/
int readers_run(struct readers *readers, struct error *error);

#endif
