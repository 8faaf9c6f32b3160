/*
** readers.h: several connections to the same file that do the tasks of one query. Each connection
** has a thread of its own: the host's connection has the caller's thread.
**
** Requirements:
**   S2  All connections see one state of one file. The host has no transaction when the further
**       connections are opened. Each of them reads PRAGMA data_version before the host begins to
**       read, and again afterwards in its own transaction. Equal versions show that nobody has
**       committed in between. The host itself must have changed nothing since. The readers also
**       check that the file has not been moved. The further connections cannot write.
**   S5  An interrupt or the progress handler of the host ends the tasks on every connection. (While
**       sums are added up, the host's thread looks only after its own share.)
**   S6  No thread uses the connection of another thread, except that the host's thread may
**       interrupt it.
*/
#ifndef DIFFUSE_QUERY_READERS_H
#define DIFFUSE_QUERY_READERS_H

#include "query/collector.h"

/* A connection, and the sums of its tasks. */
struct reader {
  struct readers *readers;
  int number;                  /* 0: the host's connection */
  struct collector *collector; /* the connection */
  struct rows *rows;           /* takes the sums */
  const struct secret *secret; /* of the rows of all connections */
};

/* The tasks, and the functions that do them. `context` is the first argument of each function. */
struct tasks {
  void *context;
  unsigned count;
  /*
  ** Prepares a connection, on the host's thread. Returns 0 if the host must read alone, because
  ** the connection might give other results.
  */
  int (*prepare)(void *context, const struct reader *reader);
  /*
  ** Opens the rows of a further connection. Runs on its thread, so that threads do not share the
  ** memory of their sums. The rows have the secret of the reader. Returns 1, or 0 with the error
  ** set.
  */
  int (*open)(void *context, const struct reader *reader, struct error *error);
  /*
  ** Does one task on the thread of a connection. Returns SQLITE_DONE, or another result code with
  ** the error set.
  */
  int (*run)(void *context, const struct reader *reader, unsigned task, struct error *error);
  /*
  ** Runs from time to time on the host's thread while it waits for other threads, so that SQLite
  ** checks the host's interrupt and progress handler (S5). Returns as run() does.
  */
  int (*wait)(void *context, const struct reader *reader, struct error *error);
};

/*
** Opens as many further connections to the host's file as PRAGMA threads allows. The caller must
** call this function before the host begins to read. Returns null if the host must read alone.
*/
struct readers *readers_open(struct collector *collector);
void readers_close(struct readers *readers); /* `readers` may be null */

/* Returns the number of connections, including the host's. */
int readers_count(const struct readers *readers);

/* Returns the host's connection. */
struct collector *readers_host(const struct readers *readers);

/*
** Prepares all connections for the tasks, after the host has begun to read. `rows` is open and
** takes the sums. Returns 1, or 0 if the host must read alone.
*/
int readers_settle(struct readers *readers, const struct tasks *tasks, struct rows *rows);

/*
** Does all tasks, and adds the sums of all connections to the `rows` of readers_settle(), on all
** threads if the sums are vectors by unit (sums/vector_sum.h). Returns SQLITE_DONE, or the result
** code of the first error, with the error set.
*/
int readers_run(struct readers *readers, struct error *error);

#endif
