/* diffusion.c: see math.h. A direct evaluation of the formulas would lose digits as theta t ->
** 0 and overflow as theta t -> infinity. One function computes (1 - e^-u)/u, continuous at u = 0,
** and products are scaled numbers (numeric.h).
** Tests: tests/math/test_diffusion.c, tests/papers/test_papers_accuracy.py */
#include "math/math.h"

#include <math.h>

#include "math/numeric.h"

/* Returns (1 - e^(-2 theta t))/theta: 2t at theta = 0, and 1/theta at theta t = infinity. */
static double decayed_time(double theta, double t) {
  double u = 2.0 * (theta * t);
  if (u > 1.0) return -expm1(-u) / theta;
  return u > 0.0 ? 2.0 * t * (-expm1(-u) / u) : 2.0 * t;
}

static struct scaled scaled_variance(double theta, double rho, double t) {
  return scaled_times(scaled_square(scaled(rho)), scaled(decayed_time(theta, t)));
}

/* Returns the clock tau = rho^2 e^(2 theta t) decayed_time(theta, t), without overflow. */
static struct scaled scaled_clock(double theta, double rho, double t) {
  return scaled_times(scaled_variance(theta, rho, t), scaled_exp(2.0 * (theta * t)));
}

/* Returns sensitivity^2/(2 clock), or 0 if the sensitivity is 0, whatever the clock is. */
static double clock_rate(double sensitivity, struct scaled clock) {
  if (sensitivity == 0.0) return 0.0;
  struct scaled rate = scaled_over(scaled_square(scaled(sensitivity)), clock);
  return scaled_value(scaled_times(rate, scaled(0.5)));
}

/* Returns a bound on the integral of kappa over a segment of the grid of this width, from kappa at
** its ends. Where the formula for RATE_LOG_CONVEX cannot be evaluated, it is the trapezoid rule,
** also an upper bound, because a log-convex function is convex. */
static double segment(double width, double a, double b, enum rate_rule rule) {
  if (rule == RATE_STEPS) return a > 0.0 ? width * a : 0.0;
  double low = fmin(a, b), high = fmax(a, b);
  if (isinf(high)) return INFINITY;
  if (rule == RATE_CONVEX || low == high || low == 0.0) return width * (low / 2.0 + high / 2.0);
  double fall = high / low < 2.0 ? log1p((high - low) / low) : log(high) - log(low);
  return width * ((high - low) / fall);
}

double diffusion_rate(const struct rate_point *grid, size_t count, double tail,
                      enum rate_rule rule) {
  double rate = tail;
  for (size_t i = count - 1; i > 0; i--) /* the small terms are added first */
    rate += segment(grid[i].s - grid[i - 1].s, grid[i - 1].kappa, grid[i].kappa, rule);
  return rate;
}

/* Returns kappa = (sensitivity * slope)^2, or 0 if the sensitivity is 0, whatever the slope is. */
static double slope_gamma(double sensitivity, struct scaled slope) {
  if (sensitivity == 0.0) return 0.0;
  return scaled_value(scaled_square(scaled_times(scaled(sensitivity), slope)));
}

double brownian_gamma(double sensitivity, double s) {
  return slope_gamma(sensitivity, scaled_over(scaled(0.5), scaled(s)));
}

/* With the clock rho^2 e^(2 theta s) d, the slope rho e^(theta s)/clock is e^(-theta s)/(rho d). */
double ou_gamma(double sensitivity, double theta, double rho, double s) {
  struct scaled below = scaled_times(scaled(rho), scaled(decayed_time(theta, s)));
  return slope_gamma(sensitivity, scaled_over(scaled_exp(-theta * s), below));
}

double brownian_rate(double sensitivity, double t) {
  return clock_rate(sensitivity, scaled_times(scaled(2.0), scaled(t)));
}

double ou_rate(double sensitivity, double theta, double rho, double t) {
  return clock_rate(sensitivity, scaled_clock(theta, rho, t));
}

double ou_clock(double theta, double rho, double t) {
  return scaled_value(scaled_clock(theta, rho, t));
}

/* With x = theta clock/rho^2, the result is ln(1+x)/(2 theta). If x is so small that ln(1+x) = x,
** the result is clock/(2 rho^2). */
double ou_time(double theta, double rho, double clock) {
  struct scaled base = scaled_over(scaled(clock), scaled_square(scaled(rho)));
  struct scaled x = scaled_times(base, scaled(theta));
  double small = scaled_value(x);
  if (small < 1.0) {
    double ratio = small > 1e-17 ? log1p(small) / small : 1.0;
    return scaled_value(scaled_times(base, scaled(0.5 * ratio)));
  }
  double logarithm =
      small < 1e300 ? log1p(small) : log(x.mantissa) + (double)x.exponent * 0x1.62e42fefa39efp-1;
  return scaled_value(scaled_over(scaled(0.5 * logarithm), scaled(theta)));
}

double ou_variance(double theta, double rho, double t) {
  return scaled_value(scaled_variance(theta, rho, t));
}

double ou_shrink(double theta, double t) {
  return exp(-theta * t);
}

double ou_mse(double theta, double rho, double t, double norm, double dimension) {
  struct scaled bias = scaled_square(scaled_times(scaled(-expm1(-theta * t)), scaled(norm)));
  struct scaled noise = scaled_times(scaled(dimension), scaled_variance(theta, rho, t));
  return scaled_value(scaled_plus(bias, noise));
}

double gaussian_mse(double theta, double rho, double t, double dimension) {
  return scaled_value(scaled_times(scaled(dimension), scaled_clock(theta, rho, t)));
}

/* Returns radius^2/(radius^2 + dimension clock). */
static struct scaled best_shrink(double radius, double dimension, struct scaled clock) {
  struct scaled square = scaled_square(scaled(radius));
  return scaled_over(square, scaled_plus(square, scaled_times(scaled(dimension), clock)));
}

double pgm_mse(double theta, double rho, double t, double radius, double dimension) {
  struct scaled clock = scaled_clock(theta, rho, t);
  if (isinf(clock.mantissa)) return scaled_value(scaled_square(scaled(radius)));
  struct scaled noise = scaled_times(scaled(dimension), clock);
  return scaled_value(scaled_times(noise, best_shrink(radius, dimension, clock)));
}

/* Returns the x of Theorem 8: dimension sensitivity^2/(2 rate radius^2). */
static struct scaled theorem_8_x(double rate, double sensitivity, double radius, double dimension) {
  struct scaled ratio = scaled_square(scaled_over(scaled(sensitivity), scaled(radius)));
  ratio = scaled_over(scaled_times(ratio, scaled(dimension)), scaled(rate));
  return scaled_times(ratio, scaled(0.5));
}

/* Returns ln(1+x). A scaled x can be larger than the largest double. */
static struct scaled scaled_log1p(struct scaled x) {
  if (x.exponent > 200) {
    return scaled(log(x.mantissa) + (double)x.exponent * 0x1.62e42fefa39efp-1);
  }
  return x.exponent < -60 ? x : scaled(log1p(scaled_value(x)));
}

double ou_best_theta(double rate, double sensitivity, double radius, double dimension) {
  return scaled_value(scaled_log1p(theorem_8_x(rate, sensitivity, radius, dimension)));
}

/* rho^2 = tau theta/(e^(2 theta) - 1) with tau = sensitivity^2/(2 rate) and e^(2 theta) - 1 = x
** (x+2). */
double ou_best_rho(double rate, double sensitivity, double radius, double dimension) {
  struct scaled x = theorem_8_x(rate, sensitivity, radius, dimension);
  struct scaled clock = scaled_over(scaled_square(scaled(sensitivity)), scaled(rate));
  clock = scaled_times(clock, scaled(0.5));
  /* For a small x, theta/x is 1. A scaled x can be smaller than the smallest positive double. */
  struct scaled ratio = scaled_over(scaled_log1p(x), x);
  return scaled_value(
      scaled_root(scaled_over(scaled_times(clock, ratio), scaled_plus(x, scaled(2.0)))));
}

double ou_shrink_radius(double radius, double dimension, double clock) {
  return scaled_value(best_shrink(radius, dimension, scaled(clock)));
}

double ou_shrink_process(double theta, double rho, double clock) {
  struct scaled square = scaled_square(scaled(rho));
  struct scaled sum = scaled_plus(square, scaled_times(scaled(theta), scaled(clock)));
  return scaled_value(scaled_root(scaled_over(square, sum)));
}
