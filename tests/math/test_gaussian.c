/* test_gaussian.c: tests the logarithm, the domain and the lattice slack of the Gaussian profile.
** tests/functions/test_planning.py compares the profile and its inverses with mpmath. */
#include "check.h"

#include <float.h>
#include <stdint.h>

#include <gsl/gsl_errno.h>

#include "math/math.h"

static const double rates[] = {1e-12, 1e-8, 1e-3, 0.1249, 0.125, 0.1251, 0.5, 3.0, 50.0, 1e3, 1e6};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void logarithm_agrees_and_outlives_delta(void) {
  for (size_t i = 0; i < COUNT(rates); i++) {
    for (double epsilon = 0.0; epsilon < 2e3; epsilon = 1.7 * epsilon + 1e-5) {
      double delta = gaussian_delta(rates[i], epsilon);
      double logarithm = gaussian_log_delta(rates[i], epsilon);
      if (delta > 1e-300 && delta < 0.99) CHECK_CLOSE(logarithm, log(delta), 1e-13);
      if (delta == 0.0) CHECK(logarithm < -700.0 && logarithm > -1e19, "got %g", logarithm);
    }
  }
  CHECK_CLOSE(gaussian_log_delta(1e6, 0.0), 0.0, 0.0); /* 1 - exp(-250000) */
}

static void monotone_in_rate_and_epsilon(void) {
  for (size_t i = 0; i < COUNT(rates); i++) {
    double before = INFINITY;
    for (double epsilon = 0.0; epsilon < 3e6; epsilon = 1.3 * epsilon + 1e-7) {
      double here = gaussian_log_delta(rates[i], epsilon);
      CHECK(here <= before && gaussian_log_delta(1.01 * rates[i], epsilon) >= here,
            "rate %g epsilon %g", rates[i], epsilon);
      before = here;
    }
  }
}

static void extremes(void) {
  CHECK_CLOSE(gaussian_delta(0.0, 0.0), 0.0, 0.0);
  CHECK_CLOSE(gaussian_epsilon(0.0, 1e-9), 0.0, 0.0);
  CHECK_CLOSE(gaussian_delta(3.0, INFINITY), 0.0, 0.0);
  CHECK(gaussian_log_delta(0.0, 1.0) == -INFINITY, "rate 0");
  CHECK_CLOSE(gaussian_delta(DBL_MAX, 1.0), 1.0, 0.0);
  CHECK_CLOSE(gaussian_delta(1e-300, DBL_MAX), 0.0, 0.0);
  CHECK_CLOSE(gaussian_rate(0.0, 1e-300), 0.0, 0.0); /* pi 1e-600 */
  CHECK_CLOSE(gaussian_epsilon(1e40, 1e-6), 1e40, 1e-13);
  double huge = gaussian_epsilon(DBL_MAX, 1e-6);
  CHECK(huge >= DBL_MAX / 2.0, "got %g", huge);
}

static void outside_the_domain_is_nan(void) {
  const double bad[][2] = {{-1.0, 1.0}, {NAN, 1.0}, {INFINITY, 1.0}, {1.0, -1.0}, {1.0, NAN}};
  for (size_t i = 0; i < COUNT(bad); i++) {
    CHECK(isnan(gaussian_delta(bad[i][0], bad[i][1])), "case %zu", i);
    CHECK(isnan(gaussian_log_delta(bad[i][0], bad[i][1])), "case %zu", i);
  }
  const double not_a_delta[] = {0.0, 1.0, -1.0, 2.0, NAN, INFINITY};
  for (size_t i = 0; i < COUNT(not_a_delta); i++) {
    CHECK(isnan(gaussian_epsilon(1.0, not_a_delta[i])), "delta %g", not_a_delta[i]);
    CHECK(isnan(gaussian_rate(1.0, not_a_delta[i])), "delta %g", not_a_delta[i]);
  }
  const double not_a_size[] = {-1.0, NAN, INFINITY};
  for (size_t i = 0; i < COUNT(not_a_size); i++) {
    CHECK(isnan(gaussian_epsilon(not_a_size[i], 0.1)), "rate %g", not_a_size[i]);
    CHECK(isnan(gaussian_rate(not_a_size[i], 0.1)), "epsilon %g", not_a_size[i]);
  }
}

static void lattice_slack(void) {
  CHECK(isnan(gaussian_lattice_slack(0)), "variance 0");
  CHECK(isnan(gaussian_lattice_slack((UINT64_C(1) << 20) - 1)), "below the floor");
  CHECK_CLOSE(gaussian_lattice_slack(UINT64_C(1) << 20), 3.186713622263291135e-15, 1e-14);
  CHECK(gaussian_lattice_slack(UINT64_C(1) << 40) < 3e-27, "reference point");
  CHECK(gaussian_lattice_slack(UINT64_MAX) > 0.0, "positive");
}

static void slack_beside_a_rate(void) {
  const double budgets[][2] = {{0.1, 1e-3}, {1, 1e-6}, {5, 1e-9}};
  for (size_t i = 0; i < COUNT(budgets); i++) {
    double epsilon = budgets[i][0], delta = budgets[i][1], most = gaussian_rate(epsilon, delta);
    for (double part = 1e-12; part < 0.6; part *= 3) {
      double got = gaussian_rate_beside(epsilon, delta, part * delta / (1 + exp(epsilon)));
      if (part < 0.5) CHECK_CLOSE(got, gaussian_rate(epsilon, delta * (1 - part)), 1e-13);
      CHECK(isnan(got) == (part > 0.5), "slack takes %g of delta", part);
    }
    for (double draws = 1; draws < 1e15; draws *= 1000) {
      double rate = gaussian_rate_beside(epsilon, delta, draws * GAUSSIAN_DRAW_SLACK) / draws;
      double slack = gaussian_slack_beside(epsilon, delta, rate * (1 - 0x1p-41));
      CHECK(slack >= draws * GAUSSIAN_DRAW_SLACK, "%g draws", draws);
      double lost = 1 - gaussian_rate_beside(epsilon, delta, slack) / most;
      double needed = 1 - gaussian_rate_beside(epsilon, delta, draws * GAUSSIAN_DRAW_SLACK) / most;
      CHECK(lost > 0x1p-44 && lost < fmax(needed * 1.01, 0x1p-42), "%g draws: %g of the rate",
            draws, lost);
    }
  }
  CHECK_CLOSE(gaussian_rate_beside(1000, 1e-6, 0), gaussian_rate(1000, 1e-6), 0);
}

int main(void) {
  gsl_set_error_handler_off();
  RUN(logarithm_agrees_and_outlives_delta);
  RUN(monotone_in_rate_and_epsilon);
  RUN(extremes);
  RUN(outside_the_domain_is_nan);
  RUN(lattice_slack);
  RUN(slack_beside_a_rate);
  FINISH();
}
