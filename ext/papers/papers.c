/* papers.c: the results of Balle et al. 2019 and Asoodeh et al. 2020 as pure SQL functions of
** public parameters: scalars, dp_amplify(), and aggregates over the steps of an iteration or the
** times of a diffusion. sql/papers.md states each theorem and its conditions. The scalars:
**
** 1. One row of the table describes a function: its parameters in order, and the computation of
**    each method. The first method is the default.
** 2. A parameter outside its domain is an error, and the message names the parameter. Where a
**    theorem does not apply, the result is NULL (NaN in math/).
** 3. The method is the last argument, a text. Without a method, the default applies. The method may
**    take the place of an optional parameter.
** Tests: tests/papers/test_papers_accuracy.py, tests/papers/test_papers_meaning.py,
** tests/papers/test_papers_paths.py, tests/papers/test_papers_tables.py */
#include "papers/papers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_functions.h"
#include "base/sql_text.h"
#include "math/math.h"

SQLITE_EXTENSION_INIT3

/* ---- parameters ------------------------------------------------------------------------------ */

/* The members of struct sgd (math/math.h), and epsilon, as places of an array. */
enum sgd_member { NONE, INDEX, LENGTH, LOSS, NOISE, ETA, BETA, RHO, DIAMETER, EPSILON, MEMBERS };

struct parameter {
  struct domain domain;
  int whole; /* only whole numbers are allowed */
  enum sgd_member member;
};

#define MAX_PARAMETERS 9
#define EXACT          9007199254740992.0 /* doubles represent all whole numbers up to 2^53 */

#define AT_LEAST_0 0.0, (double)INFINITY, 0, 1
#define ABOVE_0    0.0, (double)INFINITY, 1, 1

static const struct parameter alpha = {{"alpha", 1.0, (double)INFINITY, 0, 0}, 0, NONE};
static const struct parameter epsilon = {{"epsilon", 0.0, (double)INFINITY, 0, 0}, 0, EPSILON};
static const struct parameter x = {{"x", -(double)INFINITY, (double)INFINITY, 1, 1}, 0, NONE};
static const struct parameter sensitivity = {{"sensitivity", AT_LEAST_0}, 0, NONE};
static const struct parameter sensitivity_above_0 = {{"sensitivity", ABOVE_0}, 0, NONE};
static const struct parameter distance = {{"distance", AT_LEAST_0}, 0, NONE};
static const struct parameter r = {{"r", AT_LEAST_0}, 0, NONE};
static const struct parameter sigma = {{"sigma", ABOVE_0}, 0, NOISE};
static const struct parameter sigma1 = {{"sigma1", ABOVE_0}, 0, NONE};
static const struct parameter sigma2 = {{"sigma2", AT_LEAST_0}, 0, NONE};
static const struct parameter scale = {{"scale", ABOVE_0}, 0, NOISE};
static const struct parameter scale1 = {{"scale1", ABOVE_0}, 0, NONE};
static const struct parameter scale2 = {{"scale2", ABOVE_0}, 0, NONE};
static const struct parameter t = {{"t", AT_LEAST_0}, 0, NONE};
static const struct parameter s = {{"s", AT_LEAST_0}, 0, NONE};
static const struct parameter clock = {{"clock", AT_LEAST_0}, 0, NONE};
static const struct parameter theta = {{"theta", AT_LEAST_0}, 0, NONE};
static const struct parameter rho_of_ou = {{"rho", ABOVE_0}, 0, NONE};
static const struct parameter norm = {{"norm", AT_LEAST_0}, 0, NONE};
static const struct parameter radius = {{"radius", ABOVE_0}, 0, NONE};
static const struct parameter dim = {{"dim", 1.0, EXACT, 0, 0}, 1, NONE};
static const struct parameter rate = {{"rate", ABOVE_0}, 0, NONE};
static const struct parameter lipschitz = {{"lipschitz", AT_LEAST_0}, 0, NONE};
static const struct parameter steps = {{"steps", 1.0, EXACT, 0, 0}, 1, NONE};
static const struct parameter index_i = {{"i", 1.0, EXACT, 0, 0}, 1, INDEX};
static const struct parameter length_n = {{"n", 1.0, EXACT, 0, 0}, 1, LENGTH};
static const struct parameter lipschitz_loss = {{"lipschitz_loss", AT_LEAST_0}, 0, LOSS};
static const struct parameter eta = {{"eta", ABOVE_0}, 0, ETA};
static const struct parameter beta = {{"beta", AT_LEAST_0}, 0, BETA};
static const struct parameter rho = {{"rho", AT_LEAST_0}, 0, RHO};
static const struct parameter diameter = {{"diameter", 0.0, (double)INFINITY, 0, 0}, 0, DIAMETER};
static const struct parameter width = {{"width", 0.0, (double)INFINITY, 0, 0}, 0, DIAMETER};

/* ---- the call -------------------------------------------------------------------------------- */

/* A method, and its function, which takes `count` numbers, or a struct sgd and perhaps epsilon. */
struct method {
  const char *name;
  int count;
  union {
    double (*of_sgd)(const struct sgd *, double epsilon); /* 0 */
    double (*of_rate)(const struct sgd *);                /* 1 */
    double (*of_2)(double, double);
    double (*of_3)(double, double, double);
    double (*of_4)(double, double, double, double);
    double (*of_5)(double, double, double, double, double);
  };
};

static double evaluate(const struct method *method, const double *a, const double *m) {
  struct sgd sgd = {m[INDEX], m[LENGTH], m[LOSS], m[NOISE], m[ETA], m[BETA], m[RHO], m[DIAMETER]};
  switch (method->count) {
  case 1: return method->of_rate(&sgd);
  case 2: return method->of_2(a[0], a[1]);
  case 3: return method->of_3(a[0], a[1], a[2]);
  case 4: return method->of_4(a[0], a[1], a[2], a[3]);
  case 5: return method->of_5(a[0], a[1], a[2], a[3], a[4]);
  default: return method->of_sgd(&sgd, m[EPSILON]);
  }
}

struct paper {
  /* The first member, so that a pointer to the scalar is a pointer to the row. */
  struct scalar scalar;
  const struct parameter *parameter[MAX_PARAMETERS];
  /* The first method is the default. A function without a choice has one method without a name. */
  struct method method[3];
};

/* Returns the requested method, or null after an error. */
static const struct method *method_of(sqlite3_context *context, const struct paper *paper,
                                      sqlite3_value *value) {
  const struct method *method = paper->method;
  const char *asked = plain_text(value);
  for (int k = 0; asked && k < 3 && method[k].name; k++)
    if (strcmp(method[k].name, asked) == 0) return &method[k];
  const char *third = method[2].name;
  function_error(context, "method must be '%s%s%s' or '%s'%s", method[0].name, third ? "', '" : "",
                 third ? method[1].name : "", third ? third : method[1].name,
                 not_a(value, SQLITE_TEXT));
  return 0;
}

/* Reads an argument and checks the domain of the parameter. */
static int read_parameter(sqlite3_context *context, const struct parameter *parameter,
                          sqlite3_value *value, double *number) {
  if (!argument_number(context, value, &parameter->domain, number)) return 0;
  if (!parameter->whole || *number == floor(*number)) return 1;
  return function_error(context, "%s must be a whole number", parameter->domain.parameter);
}

static void paper_call(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct paper *paper = (const struct paper *)function_of(context);
  const struct method *method = &paper->method[0];
  double number[MAX_PARAMETERS] = {0.0};
  /* A random stop without i is asked for the row with the least privacy, which is row 1. */
  double members[MEMBERS] = {[INDEX] = 1, [LENGTH] = 1, [DIAMETER] = (double)INFINITY};
  for (int k = 0; k < count; k++) {
    int is_method = k >= paper->scalar.min_arguments && k == count - 1 && paper->method[0].name &&
                    plain_text(arguments[k]);
    if (k < MAX_PARAMETERS && paper->parameter[k] && !is_method) {
      if (!read_parameter(context, paper->parameter[k], arguments[k], &number[k])) return;
      members[paper->parameter[k]->member] = number[k];
    } else {
      method = method_of(context, paper, arguments[k]);
      if (!method) return;
    }
  }
  if (members[INDEX] > members[LENGTH]) { /* i is one of the n steps */
    function_error(context, "i must be at most n");
  } else if (method->count == 5 && method->of_5 == printed_iteration_rdp && number[3] > 1) {
    /* The printed theorem composes with L^2, which is a bound only if L is at most 1. */
    function_error(context, "lipschitz must be a number in [0, 1] for the method 'paper'");
  } else {
    sqlite3_result_double(context, evaluate(method, number, members)); /* NaN becomes NULL */
  }
}

/* ---- the table ------------------------------------------------------------------------------- */

#define FUNCTION(name, least, most)                                                                \
  { name, least, most, paper_call }
#define OF_SGD(f)  .count = 0, .of_sgd = f
#define OF_RATE(f) .count = 1, .of_rate = f
#define OF_2(f)    .count = 2, .of_2 = f
#define OF_3(f)    .count = 3, .of_3 = f
#define OF_4(f)    .count = 4, .of_4 = f
#define OF_5(f)    .count = 5, .of_5 = f
#define SGD        &index_i, &length_n, &lipschitz_loss, &sigma, &eta, &beta, &rho

static const struct paper papers[] = {
    {FUNCTION("dp_rdp_gaussian", 3, 3), {&alpha, &sensitivity, &sigma}, {{0, OF_3(gaussian_rdp)}}},
    {FUNCTION("dp_rdp_laplace", 3, 3), {&alpha, &sensitivity, &scale}, {{0, OF_3(laplace_rdp)}}},
    {FUNCTION("dp_rdp_response", 2, 2), {&alpha, &epsilon}, {{0, OF_2(response_rdp)}}},
    {FUNCTION("dp_brownian_gamma", 2, 2), {&sensitivity, &s}, {{0, OF_2(brownian_gamma)}}},
    {FUNCTION("dp_ou_gamma", 4, 4), {&sensitivity, &theta, &rho_of_ou, &s}, {{0, OF_4(ou_gamma)}}},
    {FUNCTION("dp_brownian_rate", 2, 2), {&sensitivity, &t}, {{0, OF_2(brownian_rate)}}},
    {FUNCTION("dp_ou_rate", 4, 4), {&sensitivity, &theta, &rho_of_ou, &t}, {{0, OF_4(ou_rate)}}},
    {FUNCTION("dp_ou_clock", 3, 3), {&theta, &rho_of_ou, &t}, {{0, OF_3(ou_clock)}}},
    {FUNCTION("dp_ou_time", 3, 3), {&theta, &rho_of_ou, &clock}, {{0, OF_3(ou_time)}}},
    {FUNCTION("dp_ou_variance", 3, 3), {&theta, &rho_of_ou, &t}, {{0, OF_3(ou_variance)}}},
    {FUNCTION("dp_ou_shrink", 2, 2), {&theta, &t}, {{0, OF_2(ou_shrink)}}},
    {FUNCTION("dp_ou_mse", 5, 5), {&theta, &rho_of_ou, &t, &norm, &dim}, {{0, OF_5(ou_mse)}}},
    {FUNCTION("dp_gaussian_mse", 4, 4), {&theta, &rho_of_ou, &t, &dim}, {{0, OF_4(gaussian_mse)}}},
    {FUNCTION("dp_pgm_mse", 5, 5), {&theta, &rho_of_ou, &t, &radius, &dim}, {{0, OF_5(pgm_mse)}}},
    {FUNCTION("dp_ou_theta", 4, 4),
     {&rate, &sensitivity_above_0, &radius, &dim},
     {{0, OF_4(ou_best_theta)}}},
    {FUNCTION("dp_ou_rho", 4, 4),
     {&rate, &sensitivity_above_0, &radius, &dim},
     {{0, OF_4(ou_best_rho)}}},
    {FUNCTION("dp_iterated_gaussian", 4, 4),
     {&alpha, &sensitivity, &sigma1, &sigma2},
     {{0, OF_4(iterated_gaussian_rdp)}}},
    {FUNCTION("dp_iterated_laplace", 4, 4),
     {&alpha, &sensitivity, &scale1, &scale2},
     {{0, OF_4(iterated_laplace_rdp)}}},
    {FUNCTION("dp_laplace2_pdf", 3, 3), {&x, &scale1, &scale2}, {{0, OF_3(laplace2_density)}}},
    {FUNCTION("dp_laplace2_epsilon", 3, 3),
     {&sensitivity, &scale1, &scale2},
     {{0, OF_3(laplace2_epsilon)}}},
    {FUNCTION("dp_lipschitz_gaussian", 5, 5),
     {&alpha, &sensitivity, &sigma1, &sigma2, &lipschitz},
     {{0, OF_5(lipschitz_gaussian_rdp)}}},
    {FUNCTION("dp_iteration", 5, 6),
     {&alpha, &distance, &sigma, &lipschitz, &steps},
     {{"path", OF_5(path_iteration_rdp)}, {"paper", OF_5(printed_iteration_rdp)}}},
    {FUNCTION("dp_sgd_lipschitz", 3, 4),
     {&eta, &beta, &rho},
     {{"best", OF_3(sgd_contraction)}, {"paper", OF_3(printed_contraction)}}},
    {FUNCTION("dp_sgd_rate", 7, 8),
     {SGD},
     {{"best", OF_RATE(sgd_rate_best)},
      {"path", OF_RATE(sgd_rate_path)},
      {"paper", OF_RATE(sgd_rate_printed)}}},
    {FUNCTION("dp_hockey_gaussian", 2, 2), {&epsilon, &r}, {{0, OF_2(gaussian_hockey_stick)}}},
    {FUNCTION("dp_hockey_laplace", 2, 2), {&epsilon, &r}, {{0, OF_2(laplace_hockey_stick)}}},
    {FUNCTION("dp_sgd_delta", 9, 10),
     {&epsilon, SGD, &diameter},
     {{"best", OF_SGD(sgd_delta_best)},
      {"iterated", OF_SGD(sgd_delta_iterated)},
      {"paper", OF_SGD(sgd_delta_printed)}}},
    {FUNCTION("dp_sgd_delta_rdp", 8, 8), {&epsilon, SGD}, {{0, OF_SGD(sgd_delta_rdp)}}},
    {FUNCTION("dp_sgd_delta_laplace", 9, 10),
     {&epsilon, &index_i, &length_n, &lipschitz_loss, &scale, &eta, &beta, &rho, &width},
     {{"best", OF_SGD(sgd_delta_laplace_best)},
      {"iterated", OF_SGD(sgd_delta_laplace_iterated)},
      {"paper", OF_SGD(sgd_delta_laplace_printed)}}},
    {FUNCTION("dp_sgd_delta_random_stop", 8, 10),
     {&epsilon, &length_n, &lipschitz_loss, &sigma, &eta, &beta, &rho, &diameter, &index_i},
     {{"sum", OF_SGD(sgd_delta_random_stop)}, {"paper", OF_SGD(sgd_delta_random_stop_printed)}}},
};

/* ---- amplification by mixing ----------------------------------------------------------------- */

/* Theorem 1 of Balle et al. 2019 as a table-valued function that returns one row:
**
**     SELECT epsilon, delta FROM dp_amplify(condition, gamma, epsilon, delta);
**
** condition is 'dobrushin', 'dobrushin-epsilon', 'doeblin' or 'ultra'. For 'dobrushin-epsilon',
** gamma is the coefficient of the kernel at another epsilon, which the hidden column kernel_epsilon
** gives (mixing_epsilon() in math/math.h). The function reads only its arguments and is therefore
** marked innocuous. */

static const struct condition {
  const char *name;
  struct amplified (*amplify)(double gamma, double epsilon, double delta);
} conditions[] = {
    {"dobrushin", amplify_dobrushin},
    {"dobrushin-epsilon", amplify_dobrushin},
    {"doeblin", amplify_doeblin},
    {"ultra", amplify_ultra},
};

static const struct domain domains[] = {
    {"gamma", 0.0, 1.0, 0, 0},
    {"epsilon", 0.0, (double)INFINITY, 0, 0},
    {"delta", 0.0, 1.0, 0, 0},
};

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  (void)context;
  const char *asked = plain_text(arguments[0]);
  const struct condition *condition = 0;
  double number[3]; /* gamma, epsilon, delta */
  for (size_t k = 0; asked && k < sizeof conditions / sizeof *conditions; k++)
    if (strcmp(conditions[k].name, asked) == 0) condition = &conditions[k];
  if (!condition)
    return error_set(error,
                     "condition must be 'dobrushin', 'dobrushin-epsilon', 'doeblin' or 'ultra'%s",
                     not_a(arguments[0], SQLITE_TEXT));
  for (int k = 0; k < 3; k++)
    if (!domain_check(arguments[k + 1], &domains[k], &number[k], error)) return 0;
  struct amplified amplified = condition->amplify(number[0], number[1], number[2]);
  return row_real(rows, amplified.epsilon) && row_real(rows, amplified.delta) &&
         row_real(rows, mixing_epsilon(number[1], number[2]));
}

static const struct row_table amplify_table = {
    .name = "dp_amplify",
    .columns = "epsilon REAL, delta REAL, condition TEXT HIDDEN, gamma REAL HIDDEN,"
               " epsilon_in REAL HIDDEN, delta_in REAL HIDDEN, kernel_epsilon REAL HIDDEN",
    .count = 3,
    .first = 2,
    .least = 4,
    .most = 4,
    .option = SQLITE_VTAB_INNOCUOUS,
    .estimate = 1,
    .cost = 1,
    .fill = fill};

/* ---- steps of an iteration ------------------------------------------------------------------- */

/* Aggregates for Theorem 4 of Balle et al. 2019, for any path of an iteration. Each row gives one
** step of the iteration: (alpha, i, sigma, lipschitz, shift) for dp_iteration_path(), and
** (alpha, i, sigma, lipschitz, distance) for dp_iteration_best().
**
** 1. i is the number of a step. Each number from 1 to the largest i occurs once. The order of rows
**    does not matter. An iteration has at most 1,000,000 steps. Without a row, the result is NULL.
** 2. alpha must be the same in every row, and so must the distance of dp_iteration_best(). */

#define MAX_STEPS 1000000

struct path_aggregate {
  struct row_aggregate aggregate;
  const char *last; /* the name of the last argument */
  int is_given;     /* 1: the caller gives the path, and the last argument is the shift of a step */
};

/* The progress of one call of an aggregate. All members are zero at the start. Step i is at steps[i
** - 1]. A step with sigma 0 has no row yet. */
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
  const struct domain columns[] = {{"alpha", 1, infinity, 0, 0},
                                   {"i", 1, MAX_STEPS, 0, 0},
                                   {"sigma", 0, infinity, 1, 1},
                                   {"lipschitz", 0, infinity, 0, 1},
                                   {aggregate->last, 0, infinity, 0, 1}};
  double number[5];
  for (int k = 0; k < 5; k++)
    if (!argument_number(context, arguments[k], &columns[k], &number[k])) return 0;
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

static void path_final(sqlite3_context *context) {
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

static const struct path_aggregate path_aggregates[] = {
    {{"dp_iteration_path", 5, 5, sizeof(struct collected), add_step, path_final}, "shift", 1},
    {{"dp_iteration_best", 5, 5, sizeof(struct collected), add_step, path_final}, "distance", 0},
};

/* ---- times of a diffusion -------------------------------------------------------------------- */

/* dp_diffusion_rate(): Theorem 6 of Balle et al. 2019 for a diffusion that is given as a table. It
** reads rows (s, kappa). If the diffusion starts from two different
** answers, its value at time s has two different densities. kappa is the carre du champ of the
** logarithm of the ratio of these densities at a point y, or an upper bound on this carre du champ.
**
** The order of rows does not matter. Several rows may have the same time, for example for several
** points y or several pairs of answers. Of these rows, the one with the largest kappa counts.
** Without a row, the result is NULL. */

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

/* Returns whether the second of three points lies on or below the curve that joins the first and
** the third point. The method determines the curve. */
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

int amplify_register(sqlite3 *db) {
  return row_table_register(db, &amplify_table, 0, 0);
}

int papers_register(struct pure *pure) {
  int rc = SQLITE_OK;
  for (size_t k = 0; k < sizeof papers / sizeof *papers && rc == SQLITE_OK; k++)
    rc = pure_register(pure, &papers[k].scalar);
  if (rc == SQLITE_OK) rc = kernels_register(pure);
  if (rc == SQLITE_OK) rc = aggregate_register(pure, &path_aggregates[0].aggregate);
  if (rc == SQLITE_OK) rc = aggregate_register(pure, &path_aggregates[1].aggregate);
  return rc == SQLITE_OK ? aggregate_register(pure, &diffusion_aggregate) : rc;
}
