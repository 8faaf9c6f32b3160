/*
** paths.c: aggregates for Theorem 4 of Balle et al. 2019, for any path of an iteration. Each row
** gives one step of the iteration: (alpha, i, sigma, lipschitz, shift) for dp_iteration_path(), and
** (alpha, i, sigma, lipschitz, distance) for dp_iteration_best().
**
** 1. i is the number of a step. Each number from 1 to the largest i occurs once. The order of rows
**    does not matter. An iteration has at most 1,000,000 steps. Without a row, the result is NULL.
** 2. alpha must be the same in every row, and so must the distance of dp_iteration_best().
** 3. xFinal runs once, even after an error, and frees all memory.
** Tests: tests/papers/test_papers_paths.py
*/
#include "papers/papers.h"

#include <math.h>
#include <stdint.h>
#include <stdarg.h>
#include <string.h>

#include "base/scalar.h"
#include "math/coupling.h"

SQLITE_EXTENSION_INIT3

#define MAX_STEPS 1000000

struct aggregate {
  const char *name;
  const char *last; /* the name of the last argument */
  int is_given;     /* 1: the caller gives the path, and the last argument is the shift of a step */
};

static const struct aggregate aggregates[] = {
    {"dp_iteration_path", "shift", 1},
    {"dp_iteration_best", "distance", 0},
};

/*
** The progress of one call of an aggregate. All members are zero at the start. Step i is at steps[i
** - 1]. A step with sigma 0 has no row yet.
*/
struct collected {
  int started, failed;
  double alpha, distance;
  struct path_step *steps;
  long room, last, count;
};

/* Fails the call and always returns 0. */
static int fail(sqlite3_context *context, struct collected *collected, const char *format, ...) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  struct error error = {0};
  va_list arguments;
  va_start(arguments, format);
  error_set_list(&error, format, arguments);
  va_end(arguments);
  collected->failed = 1;
  fail_call(context, aggregate->name, &error);
  return 0;
}

/* Reads a number in a domain. Returns 0 after an error. */
static int number(sqlite3_context *context, struct collected *collected, sqlite3_value *value,
                  struct domain domain, double *x) {
  struct error error = {0};
  if (domain_check(value, &domain, x, &error)) return 1;
  fail(context, collected, "%s", error_text(&error));
  error_clear(&error);
  return 0;
}

/* Makes room for step `last`. New steps have sigma 0. */
static int make_room(sqlite3_context *context, struct collected *collected, long last) {
  if (last <= collected->room) return 1;
  long room = collected->room < 16 ? 16 : collected->room;
  while (room < last) room *= 2;
  struct path_step *grown =
      sqlite3_realloc64(collected->steps, sizeof *grown * (sqlite3_uint64)room);
  if (!grown) return fail(context, collected, "out of memory");
  memset(grown + collected->room, 0, sizeof *grown * (size_t)(room - collected->room));
  collected->steps = grown;
  collected->room = room;
  return 1;
}

/* Checks that a value is the same in every row. */
static int same(sqlite3_context *context, struct collected *collected, const char *name,
                double *first, double now) {
  if (!collected->started) *first = now;
  return now == *first || fail(context, collected, "%s must be the same in every row", name);
}

static void step(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  struct collected *collected = sqlite3_aggregate_context(context, sizeof *collected);
  const double infinity = (double)INFINITY;
  struct path_step row = {0, 0, 0};
  double alpha, index, last;
  (void)count;
  if (!collected) {
    sqlite3_result_error_nomem(context);
    return;
  }
  if (collected->failed ||
      !number(context, collected, arguments[0], (struct domain){"alpha", 1, infinity, 0, 0},
              &alpha) ||
      !number(context, collected, arguments[1], (struct domain){"i", 1, MAX_STEPS, 0, 0}, &index) ||
      !number(context, collected, arguments[2], (struct domain){"sigma", 0, infinity, 1, 1},
              &row.sigma) ||
      !number(context, collected, arguments[3], (struct domain){"lipschitz", 0, infinity, 0, 1},
              &row.lipschitz) ||
      !number(context, collected, arguments[4], (struct domain){aggregate->last, 0, infinity, 0, 1},
              &last) ||
      !same(context, collected, "alpha", &collected->alpha, alpha) ||
      (!aggregate->is_given && !same(context, collected, "distance", &collected->distance, last)))
    return;
  collected->started = 1;
  row.shift = aggregate->is_given ? last : 0;
  long i = (long)index;
  if ((double)i != index) {
    fail(context, collected, "i must be a whole number");
  } else if (make_room(context, collected, i)) {
    struct path_step *place = &collected->steps[i - 1];
    if (place->sigma > 0) {
      fail(context, collected, "step %d comes twice", (int)i);
      return;
    }
    *place = row;
    collected->count++;
    if (i > collected->last) collected->last = i;
  }
}

static void final(sqlite3_context *context) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  struct collected *collected = sqlite3_aggregate_context(context, 0);
  /*
  ** Either there was no row, and the result is NULL, or step() has reported an error in the first
  ** row.
  */
  if (!collected || !collected->started) return;
  long count = collected->count, missing = 0;
  while (missing < collected->last && collected->steps[missing].sigma > 0) missing++;
  if (collected->failed) {
    /* an error was reported earlier */
  } else if (count < collected->last) {
    fail(context, collected, "step %d is missing (the steps are 1 to the largest i)",
         (int)missing + 1);
  } else {
    sqlite3_result_double(context, aggregate->is_given
                                       ? given_path_rdp(collected->alpha, collected->steps, count)
                                       : best_path_rdp(collected->alpha, collected->steps, count,
                                                       collected->distance));
  }
  sqlite3_free(collected->steps);
}

int paths_register(sqlite3 *db) {
  for (size_t k = 0; k < sizeof aggregates / sizeof *aggregates; k++) {
    /* The data is constant, and SQLite never writes through this pointer. */
    void *data = (void *)(uintptr_t)&aggregates[k];
    int rc = sqlite3_create_function_v2(db, aggregates[k].name, 5,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, data,
                                        0, step, final, 0);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}
