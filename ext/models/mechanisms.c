/* mechanisms.c: the mechanisms that release models, and their family. The last rows of a noisy
** descent (sgd.h) may be public, or it may stop after a random number of rows.
** Tests: tests/models/test_sgd.py */
#include <math.h>
#include <stdlib.h>

#include "math/cost.h"
#include "math/pure_mechanisms.h"
#include "mechanism/estimate.h"
#include "mechanism/mechanism.h"
#include "models/hiding.h"
#include "models/sgd.h"

static const struct descent *descent_of(const struct terms *terms) {
  return terms->details;
}

/* ---- the lattice ----------------------------------------------------------------------------- */

static uint64_t model_design(const struct mechanism *mechanism, const struct terms *terms,
                             struct design *design) {
  (void)mechanism;
  uint64_t variance;
  descent_design(descent_of(terms), terms->shape, terms->rate, design, &variance);
  return descent_clock(descent_of(terms), terms->shape, design->shift);
}

static uint64_t model_sensitivity(const struct mechanism *mechanism, const struct terms *terms) {
  (void)mechanism;
  return descent_sensitivity(descent_of(terms), terms->shape, terms->shift);
}

/* The cost of a random stop is a curve only. */
static double model_rate(const struct mechanism *mechanism, const struct terms *terms,
                         uint64_t clock) {
  return descent_of(terms)->random_stop > 0 ? 0 : sums_rate(mechanism, terms, clock);
}

/* The clock of a point includes the noise of earlier steps, and the draw only that of the last
** step. */
static uint64_t model_draw_clock(const struct terms *terms, uint64_t clock) {
  (void)clock;
  return (uint64_t)descent_of(terms)->variance;
}

/* ---- the cost -------------------------------------------------------------------------------- */

static double stop_curve(const void *room, double alpha) {
  return response_rdp(alpha, ((const struct cost_room *)room)->epsilon);
}

/* Public rows after the private rows lower the cost. At each order, the cost is the smaller of the
** cost of the noise and the contraction bound (hiding.h). The proof covers RDP only. */
static double hidden_curve(const void *room, double alpha) {
  return fmin(noise_curve(room, alpha),
              profile_rdp(((const struct cost_room *)room)->profile, alpha));
}

static int model_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
                      struct cost_room *room, struct cost *cost) {
  sums_cost(mechanism, terms, clock, room, cost);
  if (descent_of(terms)->random_stop > 0) {
    room->epsilon = published_down(response_epsilon(terms->rate));
    *cost = (struct cost){0, terms->delta, stop_curve, room};
  } else if (descent_of(terms)->public_rows > 0) {
    *cost = (struct cost){0, 0, hidden_curve, room};
    if (room->profile) return 1; /* it does not depend on the tier, so it is computed once */
    struct course course;
    room->profile = malloc(sizeof(struct profile));
    if (!room->profile) return 0;
    course_make(&course, descent_of(terms), terms->shape, terms->shift);
    hiding_profile(&course, room->profile);
  }
  return 1;
}

#define MODEL                                                                                      \
  .statistics = STATISTIC_MODEL, .design = model_design, .sensitivity = model_sensitivity,         \
  .rate = model_rate, .draw_clock = model_draw_clock, .cost = model_cost

/* ---- the mechanisms -------------------------------------------------------------------------- */

/* Every row is private and pays for one draw of noise, whose theorem this is. */
const struct mechanism sgd_gaussian = {
    .name = "gaussian", .theorem = GAUSSIAN_THEOREM, .noise = &gaussian_noise, MODEL};

const struct mechanism sgd_laplace = {
    .name = "laplace", .theorem = LAPLACE_THEOREM, .noise = &laplace_noise, MODEL};

/* Mechanisms with public rows or a random stop. */
static const struct mechanism sgd_iteration = {
    .name = "iteration",
    .theorem = "the worst private row of a descent with public rows after it (Balle et al. 2019, "
               "Theorem 5, along the best path, and Asoodeh et al. 2020, Theorem 4, by Theorem 1 "
               "of the former anew in each step), or the first of one that stops at random "
               "(Asoodeh et al. 2020, Theorem 5); dp_sgd_profile() lists every row",
    .hides = 1,
    .noise = &gaussian_noise,
    MODEL};

static const struct mechanism sgd_laplace_iteration = {
    .name = "laplace_iteration",
    .theorem = "the last private row of a descent with public rows after it (Asoodeh et al. 2020, "
               "Theorem 3, by Theorem 1 of Balle et al. 2019 anew in each step)",
    .hides = 1,
    .noise = &laplace_noise,
    MODEL};

const struct mechanism *descent_mechanism(const struct descent *descent) {
  int is_iteration = descent->public_rows > 0 || descent->random_stop > 0;
  if (descent->laplace > 0) return is_iteration ? &sgd_laplace_iteration : &sgd_laplace;
  return is_iteration ? &sgd_iteration : &sgd_gaussian;
}

const struct mechanism *const model_mechanisms[] = {&sgd_gaussian, &sgd_iteration,
                                                    &sgd_laplace_iteration, &sgd_laplace, 0};

/* ---- the family of models, whose estimates are the coefficients ------------------------------ */

/* An upper bound on the standard deviation of the noise in a coefficient (root mean square over
** all), of all steps of the descent and outward, and never above that of the diameter of the
** ball. */
static double model_noise(const struct reading *reading) {
  const struct descent *descent = reading->details;
  int shift = reading->view.shift;
  double first = (double)descent_clock(descent, reading->shape, shift);
  double later = (double)reading->view.clock - first; /* added by steps outward (dp_diffuse) */
  double variance = descent_noise(descent, reading->shape, shift) + later;
  double widest = 2 * descent->radius / sqrt(descent->dim);
  return fmin(ldexp(sqrt(variance), reading->view.granularity), widest);
}

/* The projection of the point onto the ball. With less noise, it would also lie there, so intervals
** end there. */
static int estimate_coefficients(struct reading *reading, const int64_t *values,
                                 struct estimate *estimates) {
  const struct descent *descent = reading->details;
  int dim = reading->question->size;
  double noise = model_noise(reading);
  double *w = malloc(sizeof *w * (size_t)dim);
  if (!w) return -1;
  ball_project(descent->radius, values, dim, reading->view.granularity, w);
  for (int j = 0; j < dim; j++) {
    estimates[j] = estimate_of(reading, 0, j, w[j], noise, 1);
    estimates[j].low = fmax(estimates[j].low, -descent->radius);
    estimates[j].high = fmin(estimates[j].high, descent->radius);
  }
  free(w);
  return dim;
}

static double coefficient_stddev(const struct reading *reading) {
  return published_up(model_noise(reading));
}

const struct family family_sgd = {.statistic = STATISTIC_MODEL,
                                  .has_vector = 1,
                                  .row_norm = 1,
                                  .spread = 2,
                                  .columns = "y, features",
                                  .estimate = estimate_coefficients,
                                  .stddev = coefficient_stddev};
