/*
** processes.c: the frame of the aggregates of this room, and the aggregates over the steps of an
** iteration or the times of a diffusion.
** Tests: tests/papers/test_papers_paths.py, tests/papers/test_papers_tables.py
*/
#include "papers/papers.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/scalar.h"
#include "base/sql_text.h"
#include "math/diffusion.h"
#include "math/iteration.h"

SQLITE_EXTENSION_INIT3

int function_memory(sqlite3_context *context) {
  sqlite3_result_error_nomem(context);
  return 0;
}

static void add_row(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct row_aggregate *aggregate = sqlite3_user_data(context);
  int *failed = sqlite3_aggregate_context(context, (int)aggregate->size);
  if (!failed) {
    function_memory(context);
  } else if (!*failed) {
    *failed = !aggregate->add(context, failed, count, arguments);
  }
}

int aggregate_register(sqlite3 *db, const struct row_aggregate *aggregate) {
  int rc = SQLITE_OK;
  /* The data is constant, and SQLite never writes through this pointer. */
  void *data = (void *)(uintptr_t)aggregate;
  for (int arity = aggregate->least; arity <= aggregate->most && rc == SQLITE_OK; arity++)
    rc = sqlite3_create_function_v2(db, aggregate->name, arity, PURE, data, 0, add_row,
                                    aggregate->final, 0);
  return rc;
}

/* ---- steps of an iteration ------------------------------------------------------------------- */

/*
** Aggregates for Theorem 4 of Balle et al. 2019, for any path of an iteration. Each row
** gives one step of the iteration: (alpha, i, sigma, lipschitz, shift) for dp_iteration_path(), and
** (alpha, i, sigma, lipschitz, distance) for dp_iteration_best().
**
** 1. i is the number of a step. Each number from 1 to the largest i occurs once. The order of rows
**    does not matter. An iteration has at most 1,000,000 steps. Without a row, the result is NULL.
** 2. alpha must be the same in every row, and so must the distance of dp_iteration_best().
*/

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

/* ---- times of a diffusion -------------------------------------------------------------------- */

/*
** dp_diffusion_rate(), Theorem 6 of Balle et al. 2019 for a diffusion that is given
** as a table. The aggregate reads rows (s, kappa). If the diffusion starts from two different
** answers, its value at time s has two different densities. kappa is the carre du champ of the
** logarithm of the ratio of these densities at a point y, or an upper bound on this carre du champ.
**
** The order of rows does not matter. Several rows may have the same time, for example for several
** points y or several pairs of answers. Of these rows, the one with the largest kappa counts.
** Without a row, the result is NULL.
*/

static const struct domain s_domain = {"s", 0.0, (double)INFINITY, 0, 1};
static const struct domain kappa_domain = {"kappa", 0.0, (double)INFINITY, 0, 0};
static const struct domain tail_domain = {"tail", 0.0, (double)INFINITY, 0, 0};

/* The names of the values of enum rate_rule. The first name is the default. */
static const char *const methods[] = {"steps", "convex", "log-convex"};
#define METHODS ((int)(sizeof methods / sizeof *methods))

struct grid {
  int failed;
  int method;
  double tail;
  struct rate_point *points;
  size_t count, room;
};

/* Returns the index of the method, or -1 after an error. */
static int read_method(sqlite3_context *context, sqlite3_value *value) {
  const char *asked = plain_text(value);
  for (int i = 0; asked && i < METHODS; i++)
    if (strcmp(methods[i], asked) == 0) return i;
  function_error(context, "method must be 'steps', 'convex' or 'log-convex'%s",
                 not_a(value, SQLITE_TEXT));
  return -1;
}

/* Reads the tail and the method, which must be the same in every row. Returns 0 after an error. */
static int read_parameters(sqlite3_context *context, struct grid *grid, int count,
                           sqlite3_value **arguments) {
  double tail;
  int method = count > 3 ? read_method(context, arguments[3]) : 0;
  if (method < 0 || !argument_number(context, arguments[2], &tail_domain, &tail)) return 0;
  if (grid->count && (tail != grid->tail || method != grid->method))
    return function_error(context, "tail and method must be the same in every row");
  grid->tail = tail;
  grid->method = method;
  return 1;
}

static int add_point(sqlite3_context *context, void *state, int count, sqlite3_value **arguments) {
  struct grid *grid = state;
  struct rate_point point;
  if (!read_parameters(context, grid, count, arguments) ||
      !argument_number(context, arguments[0], &s_domain, &point.s) ||
      !argument_number(context, arguments[1], &kappa_domain, &point.kappa))
    return 0;
  if (grid->count == grid->room) {
    size_t room = grid->room ? 2 * grid->room : 64;
    struct rate_point *grown = sqlite3_realloc64(grid->points, sizeof *grown * room);
    if (!grown) return function_memory(context);
    grid->points = grown;
    grid->room = room;
  }
  grid->points[grid->count++] = point;
  return 1;
}

static int by_time(const void *a, const void *b) {
  const struct rate_point *p = a, *q = b;
  return p->s != q->s ? (p->s < q->s ? -1 : 1) : (p->kappa < q->kappa) - (p->kappa > q->kappa);
}

/*
** Returns whether the second of three points lies on or below the curve that joins the first and
** the third point. The method determines the curve.
*/
static int is_below(const struct rate_point *point, int method) {
  double part = (point[1].s - point[0].s) / (point[2].s - point[0].s);
  double a = point[0].kappa, b = point[2].kappa, line = a + part * (b - a);
  if (method == RATE_LOG_CONVEX && a > 0 && b > 0) line = exp(log(a) + part * (log(b) - log(a)));
  return isinf(a) || isinf(b) || point[1].kappa <= line * (1 + 1e-9);
}

static void rate_final(sqlite3_context *context) {
  struct grid *grid = sqlite3_aggregate_context(context, 0);
  if (!grid) return;
  /* Sort the points by time, and keep the largest kappa of each time. */
  size_t kept = 0;
  if (grid->count) qsort(grid->points, grid->count, sizeof *grid->points, by_time);
  for (size_t i = 0; i < grid->count; i++) {
    if (!kept || grid->points[kept - 1].s != grid->points[i].s)
      grid->points[kept++] = grid->points[i];
  }
  grid->count = kept;
  for (size_t i = 0; i + 2 < grid->count && grid->method != RATE_STEPS && !grid->failed; i++) {
    if (is_below(&grid->points[i], grid->method)) continue;
    grid->failed = 1;
    function_error(context, "kappa is not %s (with 'steps' it need not be)", methods[grid->method]);
  }
  if (!grid->failed && grid->count)
    sqlite3_result_double(context, diffusion_rate(grid->points, grid->count, grid->tail,
                                                  (enum rate_rule)grid->method));
  sqlite3_free(grid->points);
}

static const struct row_aggregate diffusion_aggregate = {
    "dp_diffusion_rate", 3, 4, sizeof(struct grid), add_point, rate_final};

/* ---- registration ---------------------------------------------------------------------------- */

int processes_register(sqlite3 *db) {
  int rc = aggregate_register(db, &aggregates[0].aggregate);
  if (rc == SQLITE_OK) rc = aggregate_register(db, &aggregates[1].aggregate);
  return rc == SQLITE_OK ? aggregate_register(db, &diffusion_aggregate) : rc;
}
