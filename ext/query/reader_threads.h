/*
** reader_threads.h: reads the rows of a table on several threads, each of which has a connection of
** its own to the same file. The host's connection has the caller's thread. The connections take one
** range of rowids after the other, and run a statement that reads only the rows of the range.
**
** Requirements:
**   S1  Every row of the query comes from exactly one range (D4 in row_loop.h).
**   S2  All connections see one state of one file. The host has no transaction when the further
**       connections are opened. Each of them reads PRAGMA data_version before the host begins to
**       read, and again afterwards in its own transaction. Equal versions show that nobody has
**       committed in between. The host itself must have changed nothing since. The readers also
**       check that the file has not been moved. The further connections cannot write.
**   S3  A row gives the same result on every connection. The caller checks that the functions and
**       collations of each connection are SQLite's own. The readers copy the host's settings that
**       affect values.
**   S4  If S1, S2 or S3 cannot be shown, the query runs on the host's connection alone. The
**       published values are the same in both cases, because sums are exact integers in any order.
**   S5  An interrupt or the progress handler of the host ends the tasks on every connection. (While
**       sums are added up, the host's thread looks only after its own share.)
**   S6  No thread uses the connection of another thread, except that the host's thread may
**       interrupt it.
*/
#ifndef DIFFUSE_QUERY_READER_THREADS_H
#define DIFFUSE_QUERY_READER_THREADS_H

#include "query/collector.h"
#include "query/unit_map.h"

struct readers;

/*
** Opens as many further connections to the host's file as PRAGMA threads allows. The caller must
** call this function before the host begins to read. Returns null if the host must read alone.
*/
struct readers *readers_open(struct collector *collector);
void readers_close(struct readers *readers); /* `readers` may be null */

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
  ** this connection, so that threads do not share the memory of their sums. If a map finds the
  ** units of the rows, it may be `map`. Returns 1, or 0 with the error set.
  */
  int (*open)(void *context, struct rows *rows, const struct secret *secret, struct unit_map *map,
              struct error *error);
  /* Sets the error for a result code of collector_run() on a connection. */
  void (*explain)(void *context, const struct collector *collector, int rc, struct error *error);
};

/*
** Reads all rows, and adds their sums to `rows`, which is open; on all threads, if the sums are
** vectors by unit (sums/vector_sum.h). Begins to read on the host's connection if the host has not
** begun yet. Sets *rc to SQLITE_DONE, or to the result code of the first error, with the error set.
** Returns 1, or 0 if the host must read alone (S4). May be called once.
*/
int readers_run(struct readers *readers, const struct range_query *query, struct rows *rows,
                int *rc, struct error *error);

#endif
