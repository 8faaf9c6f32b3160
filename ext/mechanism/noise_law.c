/* noise_law.c: see noise_law.h. */
#include "mechanism/noise_law.h"

#include <math.h>

#include "math/gaussian.h"
#include "math/laplace.h"
#include "math/rounding.h"
#include "noise/discrete_laplace.h"
#include "noise/lattice.h"
#include "noise/discrete_gaussian.h"

/* ---- Gaussian -------------------------------------------------------------------------------- */

static double gaussian_width(double rate) {
  return 1 / sqrt(2 * rate);
}

/* A positive double is an integer of 53 bits times a power of two, exactly. */
static uint64_t gaussian_clock(uint64_t sensitivity, double rate) {
  int exponent;
  double fraction = frexp(rate, &exponent);
  return lattice_variance(sensitivity, (uint64_t)ldexp(fraction, 53), exponent - 53);
}

static uint64_t gaussian_outward(uint64_t sensitivity, double rate, uint64_t inner) {
  uint64_t variance = gaussian_clock(sensitivity, rate);
  uint64_t least = inner + LATTICE_MIN_STEP;
  if (variance == 0 || least >= LATTICE_VARIANCE_END) return 0;
  return variance < least ? least : variance;
}

static int gaussian_step(uint64_t inner, uint64_t outer, int64_t *noise, size_t count) {
  return discrete_gaussian_draw(outer - inner, noise, count);
}

static double gaussian_draw_slack(uint64_t clock, int dimension) {
  return gaussian_lattice_slack(clock) * dimension * (1 + 0x1p-40);
}

static double gaussian_step_slack(uint64_t inner, uint64_t outer, int dimension) {
  double step = (double)(outer - inner);
  double v = (double)inner * step / (double)outer;
  return step > 0 ? 2.1 * dimension * exp(-2 * M_PI * M_PI * v) : 0;
}

/* ---- Laplace --------------------------------------------------------------------------------- */

/* The largest scale whose clock, 2 t^2, is below LATTICE_VARIANCE_END = 2^62. */
#define MOST_SCALE ((uint64_t)1518500249)

uint64_t laplace_scale(uint64_t clock) {
  uint64_t scale = (uint64_t)sqrt((double)clock / 2);
  while (scale * scale > clock / 2) scale--;
  while ((scale + 1) * (scale + 1) <= clock / 2) scale++;
  return scale;
}

static uint64_t laplace_clock_of(uint64_t scale) {
  return scale > 0 && scale <= MOST_SCALE ? 2 * scale * scale : 0;
}

static double laplace_width(double rate) {
  return 1 / laplace_distance(rate);
}

/*
** A bound on the rate of the discrete law (laplace.h); its margin is above the errors of doubles.
*/
static double rate_at(uint64_t sensitivity, double scale) {
  return laplace_rdp(1, (double)sensitivity, scale) * (1 + 0.5 / scale) * (1 + 0x1p-40);
}

static uint64_t least_scale(uint64_t sensitivity, double rate) {
  double scale = ceil((double)sensitivity / laplace_distance(rate));
  while (scale <= (double)MOST_SCALE && rate_at(sensitivity, scale) > rate) scale++;
  return scale <= (double)MOST_SCALE ? (uint64_t)scale : 0;
}

static double laplace_rate(uint64_t sensitivity, uint64_t clock) {
  return rate_at(sensitivity, (double)laplace_scale(clock));
}

static uint64_t laplace_clock(uint64_t sensitivity, double rate) {
  return laplace_clock_of(least_scale(sensitivity, rate));
}

static uint64_t laplace_outward(uint64_t sensitivity, double rate, uint64_t inner) {
  uint64_t scale = least_scale(sensitivity, rate), least = laplace_scale(inner) + 1;
  if (scale == 0) return 0;
  return laplace_clock_of(scale < least ? least : scale);
}

static int laplace_draw(uint64_t clock, int64_t *noise, size_t count) {
  return discrete_laplace_draw(laplace_scale(clock), noise, count);
}

static int laplace_step(uint64_t inner, uint64_t outer, int64_t *noise, size_t count) {
  return discrete_laplace_step(laplace_scale(inner), laplace_scale(outer), noise, count);
}

/* The law of every point is exact, and charged as what it is. */
static double no_draw_slack(uint64_t clock, int dimension) {
  (void)clock, (void)dimension;
  return 0;
}

static double no_step_slack(uint64_t inner, uint64_t outer, int dimension) {
  (void)inner, (void)outer, (void)dimension;
  return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct lattice_law lattice_laws[] = {
    [LAW_GAUSSIAN] = {1e6, gaussian_width, gaussian_clock, lattice_rate, gaussian_outward,
                      discrete_gaussian_draw, gaussian_step, gaussian_draw_slack,
                      gaussian_step_slack},
    [LAW_LAPLACE] = {1e3, laplace_width, laplace_clock, laplace_rate, laplace_outward, laplace_draw,
                     laplace_step, no_draw_slack, no_step_slack},
};
