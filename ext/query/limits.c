/* limits.c: see limits.h.
** Tests: tests/query/test_question_limits.py, tests/query/test_question_rules.py */
#include "query/limits.h"

#include <limits.h>

SQLITE_EXTENSION_INIT3

#define LOOK 1000 /* microseconds between two looks at the clock */

/* The function of the thread. SQLite ignores an interrupt that arrives between two statements, so
** the thread repeats it. */
static void watch(void *pointer) {
  struct time_limit *limit = pointer;
  while (!atomic_load(&limit->is_done)) {
    if (clock_milliseconds() >= atomic_load(&limit->end)) {
      atomic_store(&limit->is_over, 1);
      for (int i = 0; i < 2; i++) sqlite3_interrupt(limit->connections[i]);
    }
    clock_sleep(LOOK);
  }
}

int time_limit_open(struct time_limit *limit, double seconds, sqlite3 *one, sqlite3 *other,
                    struct error *error) {
  limit->has_thread = 0;
  if (isinf(seconds)) return 1;
  limit->connections[0] = one;
  limit->connections[1] = other;
  atomic_init(&limit->end, LLONG_MAX);
  atomic_init(&limit->is_over, 0);
  atomic_init(&limit->is_done, 0);
  limit->has_thread = thread_start(&limit->thread, watch, limit);
  return limit->has_thread ||
         error_set(error, "no thread starts, and without one no limit of seconds can be kept");
}

void time_limit_start(struct time_limit *limit, double seconds) {
  if (limit->has_thread)
    atomic_store(&limit->end, clock_milliseconds() + (int64_t)(seconds * 1000));
}

int time_limit_end(struct time_limit *limit) {
  if (!limit->has_thread) return 0;
  /* The thread may not have run in time. */
  int is_late = clock_milliseconds() >= atomic_load(&limit->end);
  atomic_store(&limit->is_done, 1);
  thread_join(&limit->thread);
  limit->has_thread = 0;
  return is_late || atomic_load(&limit->is_over);
}

void interrupt_pass_on(sqlite3 *db) {
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_INTERRUPT) sqlite3_interrupt(db);
}
