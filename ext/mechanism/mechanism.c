/* mechanism.c: see mechanism.h.
** Tests: tests/mechanism/test_lattice_design.c, tests/functions/test_mechanism_choice.py,
** tests/mechanism/test_groups.py, tests/mechanism/test_noise.py, tests/mechanism/test_laplace.py,
** tests/noise/test_bridges.c */
#include "mechanism/mechanism.h"

#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>
#include <stdlib.h>

#include "math/math.h"
#include "noise/noise.h"

/* ---- Gaussian noise -------------------------------------------------------------------------- */

static double gaussian_width(double rate) {
  return 1 / sqrt(2 * rate);
}

/* Every positive double is an integer of at most 53 bits times a power of two. lattice_variance()
** takes the rate in this form, without rounding. */
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

static int gaussian_between(const struct gap *gap, const int64_t *inner, const int64_t *outer,
                            int64_t *values, size_t count) {
  struct gaussian_bridge bridge = {gap->clock - gap->inner, gap->outer - gap->clock};
  return gaussian_bridge_draw(&bridge, inner, outer, values, count);
}

static double gaussian_draw_slack(uint64_t clock, int dimension) {
  return gaussian_lattice_slack(clock) * dimension * (1 + 0x1p-40);
}

static double gaussian_step_slack(uint64_t inner, uint64_t outer, int dimension) {
  double step = (double)(outer - inner);
  double v = (double)inner * step / (double)outer;
  return step > 0 ? 2.1 * dimension * exp(-2 * M_PI * M_PI * v) : 0;
}

/* Let a and b be the distances of the new clock from the inner and the outer clock. If the path is
** drawn outward, the difference of its two old points is the sum of two discrete Gaussians. If the
** new point is drawn last, this difference is one discrete Gaussian. The probabilities under the
** two joint distributions differ by a factor of at most exp(+-4.1 exp(-2 pi^2 v)) in each
** coordinate, where v = ab/(a + b). */
static double gaussian_between_slack(const struct gap *gap, int dimension) {
  double a = (double)(gap->clock - gap->inner), b = (double)(gap->outer - gap->clock);
  double slack = 4.1 * dimension * exp(-2 * M_PI * M_PI * (a / (a + b) * b)) * (1 + 0x1p-20);
  return fmax(slack, DBL_MIN); /* exp() may return 0 */
}

static double gaussian_rdp_at(uint64_t sensitivity, uint64_t clock, double alpha) {
  return alpha * lattice_rate(sensitivity, clock);
}

static double gaussian_half_width(double stddev, double confidence) {
  return published_up(stddev * gsl_cdf_ugaussian_Qinv((1 - confidence) / 2));
}

double mixed_half_width(const struct noise_law *noise, double stddev, double confidence) {
  return fmax(noise->half_width(stddev, confidence), gaussian_half_width(stddev, confidence));
}

/* The two steps for each draw (mechanism.h) cover the difference between the discrete and the
** continuous tail (Canonne, Kamath and Steinke 2020, Prop. 25). */
static double gaussian_tail(uint64_t clock, int terms, double probability) {
  return sqrt((double)clock * terms) * gsl_cdf_ugaussian_Qinv(probability);
}

static double gaussian_log_tail(double x) {
  return gsl_sf_log_erfc(x * M_SQRT1_2) - M_LN2;
}

const struct noise_law gaussian_noise = {.name = "Gaussian",
                                         .most = 1e6,
                                         .refines = 1,
                                         .has_rate = 1,
                                         .width = gaussian_width,
                                         .clock = gaussian_clock,
                                         .rate = lattice_rate,
                                         .rdp = gaussian_rdp_at,
                                         .outward = gaussian_outward,
                                         .draw = discrete_gaussian_draw,
                                         .step = gaussian_step,
                                         .between = gaussian_between,
                                         .least_between = LATTICE_MIN_STEP,
                                         .draw_slack = gaussian_draw_slack,
                                         .step_slack = gaussian_step_slack,
                                         .between_slack = gaussian_between_slack,
                                         .half_width = gaussian_half_width,
                                         .tail = gaussian_tail,
                                         .log_tail = gaussian_log_tail};

/* ---- Laplace noise --------------------------------------------------------------------------- */

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

/* Returns an upper bound on the rate of the discrete Laplace distribution (math/math.h).
** The result is raised by 2^-40 of itself to cover the rounding errors. */
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

static int laplace_between(const struct gap *gap, const int64_t *inner, const int64_t *outer,
                           int64_t *values, size_t count) {
  struct laplace_bridge bridge = {laplace_scale(gap->inner), laplace_scale(gap->clock),
                                  laplace_scale(gap->outer)};
  return laplace_bridge_draw(&bridge, inner, outer, values, count);
}

/* There is no slack: every point has exactly the distribution whose cost laplace_rdp_at()
** computes. */
static double no_draw_slack(uint64_t clock, int dimension) {
  (void)clock, (void)dimension;
  return 0;
}

static double no_step_slack(uint64_t inner, uint64_t outer, int dimension) {
  (void)inner, (void)outer, (void)dimension;
  return 0;
}

static double no_between_slack(const struct gap *gap, int dimension) {
  (void)gap, (void)dimension;
  return 0;
}

static double laplace_rdp_at(uint64_t sensitivity, uint64_t clock, double alpha) {
  return discrete_laplace_rdp(alpha, (double)sensitivity, (double)laplace_scale(clock));
}

static double laplace_half_width(double stddev, double confidence) {
  return published_up(stddev * M_SQRT1_2 * -log1p(-confidence));
}

/* Let Y be a draw of scale t, and let L have the continuous Laplace distribution of scale t. Then
** P(Y >= k) <= P(L >= k - 1) for every integer k. Therefore, the probability that the sum of n
** draws exceeds a bound is at most the probability that n plus the sum of n such L exceeds the
** bound. */
static double laplace_tail(uint64_t clock, int terms, double probability) {
  return (double)laplace_scale(clock) * laplace_sum_quantile(terms, probability);
}

static double laplace_log_tail(double x) {
  return x < 0 ? log1p(-exp(M_SQRT2 * x) / 2) : -M_SQRT2 * x - M_LN2;
}

const struct noise_law laplace_noise = {.name = "Laplace",
                                        .most = 1e3,
                                        .in_sum_norm = 1,
                                        .width = laplace_width,
                                        .clock = laplace_clock,
                                        .rate = laplace_rate,
                                        .rdp = laplace_rdp_at,
                                        .outward = laplace_outward,
                                        .draw = laplace_draw,
                                        .step = laplace_step,
                                        .between = laplace_between,
                                        .least_between = 1,
                                        .draw_slack = no_draw_slack,
                                        .step_slack = no_step_slack,
                                        .between_slack = no_between_slack,
                                        .half_width = laplace_half_width,
                                        .tail = laplace_tail,
                                        .log_tail = laplace_log_tail};

/* ---- design ---------------------------------------------------------------------------------- */

/* In the sum norm the lattice is up to 2^MOST_FINER times finer, until rounding adds less than
** 1/ROUNDING_SHARE of the sensitivity. */
#define MOST_FINER     6
#define ROUNDING_SHARE 64

/* Cross tables whose neighbours differ in more coordinates have a finer lattice. */
#define MANY_COORDINATES 4096
#define FINER_TABLES     4
#define MOST_STEPS       0x1p31 /* sensitivities must be below 2^32 (lattice_variance()) */

struct bounds design_bounds(const struct layout *shape) {
  const struct block *block = &shape->blocks[0];
  /* A spread below 2 means that contributions cannot be negative. */
  int64_t low = block->spread < 2 ? 0 : -block->reach;
  return (struct bounds){shape->scale, (double)low, (double)block->reach, low,
                         block->reach, shape->wide, shape->ladder};
}

/* The distance of neighbours in the norm of the noise, in steps of the fine lattice; below 2^56. */
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

uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh) {
  uint64_t inner = gaussian_noise.clock(sensitivity, rate);
  *fresh = inner && inner < outer ? lattice_refinement(inner, outer) : 0;
  if (*fresh == 0) return inner ? outer : 0;
  return inner >= LATTICE_MIN_VARIANCE ? inner : 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Adds the totals, each at most 2^62 in size, to the noise in `values` if it was drawn. */
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

/* The clock was chosen for the tier's rate. A rounding error can make the computed rate slightly
** larger. */
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
