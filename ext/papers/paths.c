/*
** paths.c: aggregates for Theorem 4 of Balle et al. 2019, for any path of an iteration. Each row
** gives one step of the iteration: (alpha, i, sigma, lipschitz, shift) for dp_iteration_path(), and
** (alpha, i, sigma, lipschitz, distance) for dp_iteration_best().
**
** 1. i is the number of a step. Each number from 1 to the largest i occurs once. The order of rows
**    does not matter. An iteration has at most 1,000,000 steps. Without a row, the result is NULL.
** 2. alpha must be the same in every row, and so must the distance of dp_iteration_best().
** Tests: tests/papers/test_papers_paths.py
*/
#include "papers/papers.h"

#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "math/iteration.h"
#include "papers/row_aggregate.h"

SQLITE_EXTENSION_INIT3

#define MAX_STEPS 1000000

struct path_aggregate {
  struct row_aggregate aggregate;
  const char *last; /* the name of the last argument */
  int is_given;     /* 1: the caller gives the path, and the last argument is the shift of a step */
};

/*
** The progress of one call of an aggregate. All members are zero at the start. Step i is at steps[i
** - 1]. A step with sigma 0 has no row yet.
*/
struct collected {
  int failed, started;
  double alpha, distance;
  struct path_step *steps;
  long room, last, count;
};

/* Makes room for step `last`. New steps have sigma 0. */
static int make_room(sqlite3_context *context, struct collected *collected, long last) {
  if (last <= collected->room) return 1;
  long room = collected->room < 16 ? 16 : collected->room;
  while (room < last) room *= 2;
  struct path_step *grown =
      sqlite3_realloc64(collected->steps, sizeof *grown * (sqlite3_uint64)room);
  if (!grown) return function_memory(context);
  memset(grown + collected->room, 0, sizeof *grown * (size_t)(room - collected->room));
  collected->steps = grown;
  collected->room = room;
  return 1;
}

/* Checks that a value is the same in every row. */
static int same(sqlite3_context *context, struct collected *collected, const char *name,
                double *first, double now) {
  if (!collected->started) *first = now;
  return now == *first || function_error(context, "%s must be the same in every row", name);
}

/* Adds the step that a row gives. */
static int add_step(sqlite3_context *context, void *state, int count, sqlite3_value **arguments) {
  struct collected *collected = state;
  (void)count;
  const struct path_aggregate *aggregate = sqlite3_user_data(context);
  const double infinity = (double)INFINITY;
  const struct domain domains[] = {{"alpha", 1, infinity, 0, 0},
                                   {"i", 1, MAX_STEPS, 0, 0},
                                   {"sigma", 0, infinity, 1, 1},
                                   {"lipschitz", 0, infinity, 0, 1},
                                   {aggregate->last, 0, infinity, 0, 1}};
  double number[5];
  for (int k = 0; k < 5; k++)
    if (!argument_number(context, arguments[k], &domains[k], &number[k])) return 0;
  long i = (long)number[1];
  if (!same(context, collected, "alpha", &collected->alpha, number[0]) ||
      (!aggregate->is_given &&
       !same(context, collected, "distance", &collected->distance, number[4])))
    return 0;
  collected->started = 1;
  if ((double)i != number[1]) return function_error(context, "i must be a whole number");
  if (!make_room(context, collected, i)) return 0;
  struct path_step *place = &collected->steps[i - 1];
  if (place->sigma > 0) return function_error(context, "step %d comes twice", (int)i);
  *place = (struct path_step){number[2], number[3], aggregate->is_given ? number[4] : 0};
  collected->count++;
  if (i > collected->last) collected->last = i;
  return 1;
}

static void final(sqlite3_context *context) {
  const struct path_aggregate *aggregate = sqlite3_user_data(context);
  struct collected *collected = sqlite3_aggregate_context(context, 0);
  if (!collected || !collected->started) return; /* no row, or an error in the first row */
  long count = collected->count, missing = 0;
  while (missing < collected->last && collected->steps[missing].sigma > 0) missing++;
  if (collected->failed) {
    /* an error was reported earlier */
  } else if (count < collected->last) {
    function_error(context, "step %d is missing (the steps are 1 to the largest i)",
                   (int)missing + 1);
  } else {
    sqlite3_result_double(context, aggregate->is_given
                                       ? given_path_rdp(collected->alpha, collected->steps, count)
                                       : best_path_rdp(collected->alpha, collected->steps, count,
                                                       collected->distance));
  }
  sqlite3_free(collected->steps);
}

static const struct path_aggregate aggregates[] = {
    {{"dp_iteration_path", 5, 5, sizeof(struct collected), add_step, final}, "shift", 1},
    {{"dp_iteration_best", 5, 5, sizeof(struct collected), add_step, final}, "distance", 0},
};

int paths_register(sqlite3 *db) {
  int rc = aggregate_register(db, &aggregates[0].aggregate);
  return rc == SQLITE_OK ? aggregate_register(db, &aggregates[1].aggregate) : rc;
}
