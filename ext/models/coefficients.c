/*
** coefficients.c: the family of models, whose estimates are the coefficients.
** Tests: tests/models/test_sgd.py
*/
#include <math.h>
#include <stdlib.h>

#include "math/cost.h"
#include "mechanism/estimate.h"
#include "models/sgd.h"

/*
** Returns an upper bound on the standard deviation of the noise in a coefficient (root mean square
** over all coefficients). The bound covers the noise of all steps of the descent and of the steps
** outward. The bound is never larger than the one that follows from the diameter of the ball.
*/
static double model_noise(const struct reading *reading) {
  const struct descent *descent = reading->details;
  int shift = reading->view.shift;
  double first = (double)descent_clock(descent, reading->shape, shift);
  double later = (double)reading->view.clock - first; /* added by steps outward (dp_diffuse) */
  double variance = descent_noise(descent, reading->shape, shift) + later;
  double widest = 2 * descent->radius / sqrt(descent->dim);
  return fmin(ldexp(sqrt(variance), reading->view.granularity), widest);
}

/*
** Estimates the coefficients: the projection of the point onto the ball. With less noise, they
** would also lie in the ball, so that intervals end there.
*/
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
