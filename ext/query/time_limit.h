/*
** time_limit.h: a limit on the time that statements take. A thread with a clock of its own
** interrupts their connections when the time is over. So the limit also holds while SQLite sorts
** or reads rows that no condition admits, and it needs no progress handler, of which a connection
** has only one, the host's.
*/
#ifndef DIFFUSE_QUERY_TIME_LIMIT_H
#define DIFFUSE_QUERY_TIME_LIMIT_H

#include <sqlite3ext.h>
#include <stdatomic.h>

#include "base/error.h"
#include "os/thread.h"

struct time_limit {
  sqlite3 *connections[2]; /* they stay open until time_limit_end() */
  atomic_llong end;        /* a time of clock_milliseconds() */
  atomic_int is_over, is_done;
  struct thread thread;
  int has_thread;
};

/*
** Starts the thread, which then waits for time_limit_start(): where no thread can start, nothing
** has been charged yet. If `seconds` is infinite, there is no limit. `limit` must keep its address
** until time_limit_end(). Returns 1, or 0 with the error set.
*/
int time_limit_open(struct time_limit *limit, double seconds, sqlite3 *one, sqlite3 *other,
                    struct error *error);

/* Starts the time. */
void time_limit_start(struct time_limit *limit, double seconds);

/* Ends the time, and returns whether it was over. From then on, nobody interrupts a connection. */
int time_limit_end(struct time_limit *limit);

#endif
