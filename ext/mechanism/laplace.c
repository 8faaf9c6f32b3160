/*
** laplace.c: discrete Laplace noise.
** Tests: tests/mechanism/test_laplace.py
*/
#include <math.h>

#include "math/cost.h"
#include "math/pure_mechanisms.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"

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
** Returns an upper bound on the rate of the discrete Laplace distribution (math/pure_mechanisms.h).
** The result is raised by 2^-40 of itself to cover the rounding errors.
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

static int laplace_between(const struct gap *gap, const int64_t *inner, const int64_t *outer,
                           int64_t *values, size_t count) {
  struct laplace_bridge bridge = {laplace_scale(gap->inner), laplace_scale(gap->clock),
                                  laplace_scale(gap->outer)};
  return laplace_bridge_draw(&bridge, inner, outer, values, count);
}

/*
** Laplace noise needs no slack: every point has exactly the discrete Laplace distribution whose
** cost laplace_rdp_at() computes.
*/
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

/*
** Let Y be a draw of scale t, and let L have the continuous Laplace distribution of scale t. Then
** P(Y >= k) <= P(L >= k - 1) for every integer k. Therefore, the probability that the sum of n
** draws exceeds a bound is at most the probability that n plus the sum of n such L exceeds the
** bound.
*/
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
