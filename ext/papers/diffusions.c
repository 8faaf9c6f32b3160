/*
** diffusions.c: dp_diffusion_rate(), Theorem 6 of Balle et al. 2019 for a diffusion that is given
** as a table. The aggregate reads rows (s, kappa). If the diffusion starts from two different
** answers, its value at time s has two different densities. kappa is the carre du champ of the
** logarithm of the ratio of these densities at a point y, or an upper bound on this carre du champ.
**
** The order of rows does not matter. Several rows may have the same time, for example for several
** points y or several pairs of answers. Of these rows, the one with the largest kappa counts.
** Without a row, the result is NULL.
** Tests: tests/papers/test_papers_tables.py
*/
#include "papers/papers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scalar.h"
#include "math/diffusion.h"
#include "papers/row_aggregate.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

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

const struct row_aggregate diffusion_aggregate = {"dp_diffusion_rate", 3,         4,
                                                  sizeof(struct grid), add_point, rate_final};
