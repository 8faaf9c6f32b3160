/*
** mechanism.c: see mechanism.h. gaussian.c and laplace.c have the noise laws.
** Tests: tests/mechanism/test_lattice_design.c, tests/functions/test_mechanism_choice.py,
** tests/mechanism/test_groups.py
*/
#include "mechanism/mechanism.h"

#include <math.h>
#include <stdlib.h>

#include "noise/lattice.h"

/*
** For Laplace noise, the lattice is up to 2^MOST_FINER times finer, until rounding adds less than
** 1/ROUNDING_SHARE of the sensitivity (mechanism.h).
*/
#define MOST_FINER     6
#define ROUNDING_SHARE 64

/* Cross tables whose neighbours differ in more coordinates have a finer lattice. */
#define MANY_COORDINATES 4096
#define FINER_TABLES     4
#define MOST_STEPS       0x1p31 /* sensitivities must be below 2^32 (lattice_variance()) */

/* ---- design ---------------------------------------------------------------------------------- */

struct bounds design_bounds(const struct layout *shape) {
  const struct block *block = &shape->blocks[0];
  /* A spread below 2 means that contributions cannot be negative. */
  int64_t low = block->spread < 2 ? 0 : -block->reach;
  return (struct bounds){shape->scale, (double)low,  (double)block->reach,
                         low,          block->reach, shape->wide};
}

/*
** Returns the largest distance between the totals of two neighbouring data sets, in the norm of the
** noise and in steps of the fine lattice. The distance is below 2^56.
*/
static uint64_t distance_in(const struct layout *shape, const struct noise_law *noise) {
  if (!noise->in_sum_norm || shape->is_l1 || shape->touched == 1) return shape->distance;
  return lattice_root((uint128)shape->distance * shape->distance * (uint128)shape->touched);
}

uint64_t design_sensitivity(const struct layout *shape, int shift, const struct noise_law *noise) {
  int mixes = shape->touched > 1 || shape->periods > 0 || shape->wide > 0;
  uint64_t rounding = mixes ? (uint64_t)ceil(sqrt(shape->touched)) : 0;
  if (noise->in_sum_norm) rounding = (uint64_t)shape->touched - 1 + (shape->wide > 0);
  return lattice_sensitivity(distance_in(shape, noise), shift) + rounding;
}

void design_make(struct design *design, const struct layout *shape, double rate,
                 const struct noise_law *noise) {
  uint64_t steps = shape->periods ? shape->once : distance_in(shape, noise);
  double distance = ldexp((double)steps, shape->fine_exponent);
  int exponent;
  frexp(distance * noise->width(rate), &exponent); /* in [2^(exponent-1), 2^exponent) */
  /* The width of the noise is 2^20 to 2^21 steps, or more in the sum norm. */
  design->granularity = exponent - 21;
  int is_large =
      (shape->ways || shape->wide) && !noise->in_sum_norm && shape->touched > MANY_COORDINATES;
  for (int finer = 0; is_large && finer < FINER_TABLES; finer++) {
    if (ldexp(distance, 1 - design->granularity) >= MOST_STEPS) break;
    design->granularity--;
  }
  for (int finer = 0; shape->is_l1 && finer < MOST_FINER; finer++) {
    if (ldexp(distance, -design->granularity) >= (double)shape->touched * ROUNDING_SHARE) break;
    design->granularity--;
  }
  design->shift = design->granularity - shape->fine_exponent;
  design->sensitivity = design_sensitivity(shape, design->shift, noise);
}

uint64_t design_variance(uint64_t sensitivity, double rate) {
  return gaussian_noise.clock(sensitivity, rate);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh) {
  uint64_t inner = design_variance(sensitivity, rate);
  *fresh = inner && inner < outer ? lattice_refinement(inner, outer) : 0;
  if (*fresh == 0) return inner ? outer : 0;
  return inner >= LATTICE_MIN_VARIANCE ? inner : 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

/*
** Adds the totals, each at most 2^62 in size, to the noise in `values` if `drawn` is true. Returns
** `drawn`.
*/
static int add(const int64_t *restrict totals, size_t dimension, int drawn,
               int64_t *restrict values) {
  for (size_t i = 0; i < dimension && drawn; i++) values[i] += totals[i];
  return drawn;
}

int release_draw(const struct noise_law *noise, const int64_t *restrict totals, size_t dimension,
                 uint64_t clock, int64_t *restrict values) {
  return add(totals, dimension, noise->draw(clock, values, dimension), values);
}

int release_diffuse(const struct noise_law *noise, const int64_t *restrict from, size_t dimension,
                    uint64_t inner, uint64_t outer, int64_t *restrict to) {
  return add(from, dimension, noise->step(inner, outer, to, dimension), to);
}

int release_refine(const int64_t *restrict from, const int64_t *restrict totals, size_t dimension,
                   uint64_t inner, uint64_t outer, uint64_t fresh, int64_t *restrict to) {
  if (fresh && !release_draw(&gaussian_noise, totals, dimension, fresh, to)) return 0;
  for (size_t i = 0; i < dimension; i++)
    to[i] = fresh ? lattice_refine(from[i], to[i], inner, outer) : from[i];
  return 1;
}

/* ---- facts of mechanisms --------------------------------------------------------------------- */

double mechanism_most_rate(const struct mechanism *mechanism) {
  return mechanism->noise ? mechanism->noise->most : mechanism->most;
}

const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family) {
  if (family->drawn && mechanism->statistics & family->drawn->statistic) return family->drawn;
  return mechanism->noise && mechanism->noise->in_sum_norm && family->l1 ? family->l1 : family;
}

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks) {
  unsigned statistics = family->statistic | (family->drawn ? family->drawn->statistic : 0);
  return mechanism->shrinks == shrinks && (mechanism->statistics & statistics) != 0;
}

/* ---- mechanisms that add noise to sums ------------------------------------------------------- */

static uint64_t sums_design(const struct mechanism *mechanism, const struct terms *terms,
                            struct design *design) {
  design_make(design, terms->shape, terms->rate, mechanism->noise);
  return mechanism->noise->clock(design->sensitivity, terms->rate);
}

static uint64_t sums_sensitivity(const struct mechanism *mechanism, const struct terms *terms) {
  return design_sensitivity(terms->shape, terms->shift, mechanism->noise);
}

double sums_rate(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock) {
  return mechanism->noise->rate(terms->sensitivity, clock);
}

static uint64_t sums_draw_clock(const struct terms *terms, uint64_t clock) {
  (void)terms;
  return clock;
}

double noise_curve(const void *room, double alpha) {
  const struct cost_room *of = room;
  return fmin(of->noise->rdp(of->sensitivity, of->clock, alpha), alpha * of->most);
}

/*
** The clock was chosen so that the rate of the noise is at most the tier's rate. A rounding error
** can make the computed rate slightly larger, so fmin() limits it to the tier's rate.
*/
int sums_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost) {
  const struct noise_law *noise = mechanism->noise;
  double delta = terms->shape->max_groups ? terms->delta : 0;
  room->noise = noise;
  room->sensitivity = terms->sensitivity;
  room->clock = clock;
  room->most = noise->has_rate ? terms->rate : INFINITY;
  *cost = noise->has_rate ? (struct cost){fmin(noise->rate(terms->sensitivity, clock), terms->rate),
                                          delta, 0, 0}
                          : (struct cost){0, delta, noise_curve, room};
  return 1;
}

void cost_room_clear(struct cost_room *room) {
  free(room->profile);
  room->profile = 0;
}

#define NOISY_SUMS                                                                                 \
  .design = sums_design, .sensitivity = sums_sensitivity, .rate = sums_rate,                       \
  .draw_clock = sums_draw_clock, .cost = sums_cost

/* 'gaussian' and 'laplace' publish the noisy sums, and 'ou' shrinks them towards a centre. */
const struct mechanism gaussian_mechanism = {.name = "gaussian",
                                             .theorem = GAUSSIAN_THEOREM,
                                             .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                             .noise = &gaussian_noise,
                                             NOISY_SUMS};

const struct mechanism ou_mechanism = {.name = "ou",
                                       .theorem = GAUSSIAN_THEOREM,
                                       .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                       .shrinks = 1,
                                       .noise = &gaussian_noise,
                                       NOISY_SUMS};

const struct mechanism laplace_mechanism = {.name = "laplace",
                                            .theorem = LAPLACE_THEOREM,
                                            .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                            .noise = &laplace_noise,
                                            NOISY_SUMS};
