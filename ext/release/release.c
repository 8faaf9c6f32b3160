/* release.c: see release.h. */
#include "release/release.h"

#include <math.h>

#include "math/gaussian.h"
#include "noise/lattice.h"
#include "noise/sampler.h"

/* ---- design -------------------------------------------------------------------------------------- */

struct bounds design_bounds(const struct shape *shape) {
  const struct block *block = &shape->blocks[0];
  int64_t low = block->spread < 2 ? 0 : -block->reach; /* cannot be negative */
  return (struct bounds){shape->scale, (double)low, (double)block->reach, low, block->reach};
}

uint64_t design_sensitivity(const struct shape *shape, int shift) {
  uint64_t rounding = shape->touched > 1 ? (uint64_t)ceil(sqrt(shape->touched)) : 0;
  return lattice_sensitivity(shape->distance, shift) + rounding;
}

void design_make(struct design *design, const struct shape *shape, double rate) {
  double sigma = ldexp((double)shape->distance, shape->fine_exponent) / sqrt(2 * rate);
  int exponent;
  frexp(sigma, &exponent);             /* sigma in [2^(exponent-1), 2^exponent) */
  design->granularity = exponent - 21; /* so sigma is 2^20 to 2^21 steps */
  design->shift = design->granularity - shape->fine_exponent;
  design->sensitivity = design_sensitivity(shape, design->shift);
}

/* A positive double is an integer of 53 bits times a power of two, exactly. */
uint64_t design_variance(uint64_t sensitivity, double rate) {
  int exponent;
  double fraction = frexp(rate, &exponent);
  return lattice_variance(sensitivity, (uint64_t)ldexp(fraction, 53), exponent - 53);
}

/* ---- clocks -------------------------------------------------------------------------------------- */

uint64_t path_outward(uint64_t sensitivity, double rate, uint64_t inner) {
  uint64_t variance = design_variance(sensitivity, rate);
  uint64_t least = inner + LATTICE_MIN_STEP;
  if (variance == 0 || least >= LATTICE_VARIANCE_END) return 0;
  return variance < least ? least : variance;
}

uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh) {
  uint64_t inner = design_variance(sensitivity, rate);
  *fresh = inner && inner < outer ? lattice_refinement(inner, outer) : 0;
  if (*fresh == 0) return inner ? outer : 0;
  return inner >= LATTICE_MIN_VARIANCE ? inner : 0;
}

/* ---- points -------------------------------------------------------------------------------------- */

int release_draw(const int64_t *restrict totals, size_t dimension, uint64_t variance,
                 int64_t *restrict values) {
  if (sampler_gaussian(variance, values, dimension)) return -1;
  for (size_t i = 0; i < dimension; i++)
    values[i] += totals[i]; /* |total| <= 2^62 (lattice_round) */
  return 0;
}

int release_diffuse(const int64_t *restrict from, size_t dimension, uint64_t step,
                    int64_t *restrict to) {
  return release_draw(from, dimension, step, to);
}

int release_refine(const int64_t *restrict from, const int64_t *restrict totals, size_t dimension,
                   uint64_t inner, uint64_t outer, uint64_t fresh, int64_t *restrict to) {
  if (fresh && release_draw(totals, dimension, fresh, to)) return -1;
  for (size_t i = 0; i < dimension; i++)
    to[i] = fresh ? lattice_refine(from[i], to[i], inner, outer) : from[i];
  return 0;
}

/* ---- slack --------------------------------------------------------------------------------------- */

double draw_slack(uint64_t variance, int dimension) {
  return gaussian_lattice_slack(variance) * dimension * (1 + 0x1p-40);
}

double step_slack(uint64_t inner, uint64_t outer, int dimension) {
  double step = (double)(outer - inner);
  double v = (double)inner * step / (double)outer;
  return step > 0 ? 2.1 * dimension * exp(-2 * M_PI * M_PI * v) : 0;
}
