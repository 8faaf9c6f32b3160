/* limits.h: what ends a question early: its public limits, and interrupts of the host.
**
** The options of dp_release() and of a grant set the limits:
**   steps    A unit with r rows whose evaluation takes more than steps * (1 + r) steps of SQLite's
**            virtual machine contributes nothing.
**   bytes    A unit whose evaluation needs more memory contributes nothing.
**   seconds  A question that takes longer fails, and its charge stays.
**
** Steps and bytes are counted for each unit alone, from its rows, the public tables and the text of
** the question, so other units never decide whether a unit contributes (Q1, Q2 in evaluator.h).
** Seconds are not: whether a question fails for want of time is a fact about all units together. */
#ifndef DIFFUSE_QUERY_LIMITS_H
#define DIFFUSE_QUERY_LIMITS_H

#include <math.h>
#include <sqlite3ext.h>
#include <stdatomic.h>

#include "base/error.h"
#include "os/os.h"
#include "release/release.h"

struct question_limits {
  double steps, bytes;
  double seconds; /* INFINITY: no limit */
};

#define DEFAULT_STEPS 1000000
#define DEFAULT_BYTES (1 << 30)

/* The limits that a request sets, and the defaults of an owner. */
static inline struct question_limits question_limits_of(const struct request *request) {
  return (struct question_limits){isnan(request->steps) ? DEFAULT_STEPS : request->steps,
                                  isnan(request->bytes) ? DEFAULT_BYTES : request->bytes,
                                  isnan(request->seconds) ? (double)INFINITY : request->seconds};
}

/* A limit on the time that statements take. A thread with a clock of its own interrupts their
** connections when the time is over. So the limit also holds while SQLite sorts or reads rows that
** no condition admits, and it needs no progress handler, of which a connection has only one, the
** host's. */
struct time_limit {
  sqlite3 *connections[2]; /* they stay open until time_limit_end() */
  atomic_llong end;        /* a time of clock_milliseconds() */
  atomic_int is_over, is_done;
  struct thread thread;
  int has_thread;
};

/* Starts the thread, which then waits for time_limit_start(): where no thread can start, nothing
** has been charged yet. If `seconds` is infinite, there is no limit. `limit` must keep its address
** until time_limit_end(). Returns 1, or 0 with the error set. */
int time_limit_open(struct time_limit *limit, double seconds, sqlite3 *one, sqlite3 *other,
                    struct error *error);

/* Starts the time. */
void time_limit_start(struct time_limit *limit, double seconds);

/* Ends the time, and returns whether it was over. From then on, nobody interrupts a connection. */
int time_limit_end(struct time_limit *limit);

/* Call this function after a statement of the extension has failed for whatever reason, if the
** extension goes on without its result. If the host's progress handler has interrupted it, the
** function interrupts the connection. Otherwise the host's wish would be lost, because a progress
** handler ends only the statement that calls it. */
void interrupt_pass_on(sqlite3 *db);

#endif
