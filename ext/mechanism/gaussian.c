/*
** gaussian.c: discrete Gaussian noise.
** Tests: tests/mechanism/test_noise.py, tests/noise/test_bridges.c
*/
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>

#include "math/cost.h"
#include "math/gaussian.h"
#include "mechanism/mechanism.h"
#include "noise/lattice.h"
#include "noise/noise.h"

static double gaussian_width(double rate) {
  return 1 / sqrt(2 * rate);
}

/*
** Every positive double is an integer of at most 53 bits times a power of two. The function passes
** the rate to lattice_variance() in this form, without rounding.
*/
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

/*
** Let a and b be the distances of the new clock from the inner and the outer clock. If the path is
** drawn outward, the difference of its two old points is the sum of two discrete Gaussians. If the
** new point is drawn last, this difference is one discrete Gaussian. The probabilities under the
** two joint distributions differ by a factor of at most exp(+-4.1 exp(-2 pi^2 v)) in each
** coordinate, where v = ab/(a + b).
*/
static double gaussian_between_slack(const struct gap *gap, int dimension) {
  double a = (double)(gap->clock - gap->inner), b = (double)(gap->outer - gap->clock);
  double slack = 4.1 * dimension * exp(-2 * M_PI * M_PI * (a / (a + b) * b)) * (1 + 0x1p-20);
  return fmax(slack, DBL_MIN); /* exp() may return 0 */
}

static double gaussian_rdp(uint64_t sensitivity, uint64_t clock, double alpha) {
  return alpha * lattice_rate(sensitivity, clock);
}

static double gaussian_half_width(double stddev, double confidence) {
  return published_up(stddev * gsl_cdf_ugaussian_Qinv((1 - confidence) / 2));
}

double mixed_half_width(const struct noise_law *noise, double stddev, double confidence) {
  return fmax(noise->half_width(stddev, confidence), gaussian_half_width(stddev, confidence));
}

/*
** The two steps for each draw (mechanism.h) cover the difference between the discrete and the
** continuous tail (Canonne, Kamath and Steinke 2020, Prop. 25).
*/
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
                                         .rdp = gaussian_rdp,
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
