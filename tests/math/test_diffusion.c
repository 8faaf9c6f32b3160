/* test_diffusion.c: compares math.h with its formulas. tests/papers/test_papers_accuracy.py
** compares it with mpmath over all magnitudes. */
#include "check.h"
#include "random.h"

#include <float.h>

#include "math/math.h"

static void shrinks_do_not_overflow(void) {
  CHECK_CLOSE(ou_shrink_radius(1e200, 1.0, 1e300), 1.0, 1e-15);
  CHECK_CLOSE(ou_shrink_radius(1e-200, 1.0, 1e-100), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_radius(1e-140, 1e10, 1e-310), 1.0, 1e-15);
  CHECK_CLOSE(ou_shrink_radius(1e150, 1e300, 1e300), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-200, 1e-300), 1e-200, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-100, 1e300), 0.0, 0.0);
  CHECK_CLOSE(ou_shrink_process(1e-300, 1e-300, 1e300), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-3, 1e300), 1e-303, 1e-14);
  CHECK(ou_shrink_radius(DBL_MAX, DBL_MAX, DBL_MAX) > 0.0, "lost to overflow");
  CHECK(ou_shrink_process(DBL_MAX, DBL_MAX, DBL_MAX) > 0.0, "lost to overflow");
}

static void formulas_of_the_header(void) {
  for (int run = 0; run < 300; run++) {
    double theta = 0.01 + 3 * uniform(), rho = 0.1 + uniform(), t = 0.01 + uniform();
    double sensitivity = run % 10 ? uniform() : 0, norm = uniform(), dimension = 1 + run % 9;
    double clock = rho * rho * (exp(2 * theta * t) - 1) / theta, b = exp(-theta * t);
    double square = sensitivity * sensitivity, radius = norm + 0.1, rate = square / (2 * clock);
    CHECK_CLOSE(brownian_gamma(sensitivity, t), square / (4 * t * t), 1e-12);
    CHECK_CLOSE(ou_gamma(sensitivity, theta, rho, t),
                pow(theta * sensitivity * exp(theta * t) / (rho * (exp(2 * theta * t) - 1)), 2),
                1e-12);
    CHECK_CLOSE(brownian_rate(sensitivity, t), square / (4 * t), 1e-12);
    CHECK_CLOSE(ou_rate(sensitivity, theta, rho, t), rate, 1e-12);
    CHECK_CLOSE(ou_clock(theta, rho, t), clock, 1e-12);
    CHECK_CLOSE(ou_variance(theta, rho, t), b * b * clock, 1e-12);
    CHECK_CLOSE(ou_mse(theta, rho, t, norm, dimension),
                pow((1 - b) * norm, 2) + b * b * dimension * clock, 1e-12);
    CHECK_CLOSE(gaussian_mse(theta, rho, t, dimension), dimension * clock, 1e-12);
    double shrink = radius * radius / (radius * radius + dimension * clock);
    CHECK_CLOSE(pgm_mse(theta, rho, t, radius, dimension), dimension * clock * shrink, 1e-12);
    CHECK_CLOSE(ou_shrink_radius(radius, dimension, clock), shrink, 1e-12);
    CHECK_CLOSE(ou_shrink_process(theta, rho, clock), 1 / sqrt(1 + theta * clock / rho / rho),
                1e-12);
    if (sensitivity == 0) continue;
    double best = log(1 + dimension * square / (2 * rate * radius * radius));
    CHECK_CLOSE(ou_best_theta(rate, sensitivity, radius, dimension), best, 1e-11);
    CHECK_CLOSE(ou_rate(sensitivity, best, ou_best_rho(rate, sensitivity, radius, dimension), 1),
                rate, 1e-11);
  }
  CHECK_CLOSE(brownian_rate(0, 0), 0, 0);
  CHECK_CLOSE(brownian_rate(1, 0), INFINITY, 0);
  CHECK_CLOSE(ou_rate(1, 1, 1, 0), INFINITY, 0);
  CHECK_CLOSE(ou_gamma(0, 1, 1, 0), 0, 0);
}

/* kappa goes through random values, and some segments are level, zero or infinite. */
static void integrals_of_the_three_rules(void) {
  for (int run = 0; run < 300; run++) {
    struct rate_point grid[6] = {{uniform(), 1}};
    double steps = 0.25, chords = 0.25, exponentials = 0.25;
    for (int i = 1; i < 6; i++) {
      double before = grid[i - 1].kappa, drawn = exp(12 * uniform() - 6);
      int what = (int)(random_bits() % 12);
      double kappa = what == 0 ? 0 : what == 1 ? before : what == 2 ? before * 1.5 : drawn;
      double width = uniform();
      grid[i] = (struct rate_point){grid[i - 1].s + width, kappa};
      width = grid[i].s - grid[i - 1].s;
      steps += width * before;
      chords += width * (before + kappa) / 2;
      exponentials += width * (before == kappa || before == 0 || kappa == 0
                                   ? (before + kappa) / 2
                                   : (before - kappa) / log(before / kappa));
    }
    CHECK_CLOSE(diffusion_rate(grid, 6, 0.25, RATE_STEPS), steps, 1e-12);
    CHECK_CLOSE(diffusion_rate(grid, 6, 0.25, RATE_CONVEX), chords, 1e-12);
    CHECK_CLOSE(diffusion_rate(grid, 6, 0.25, RATE_LOG_CONVEX), exponentials, 1e-10);
    grid[run % 6].kappa = INFINITY;
    CHECK_CLOSE(diffusion_rate(grid, 6, 0.25, RATE_CONVEX), INFINITY, 0);
    CHECK_CLOSE(diffusion_rate(grid, 6, 0.25, RATE_LOG_CONVEX), INFINITY, 0);
  }
}

int main(void) {
  RUN(shrinks_do_not_overflow);
  RUN(formulas_of_the_header);
  RUN(integrals_of_the_three_rules);
  FINISH();
}
