/*
** test_gaussian.c: compares the exact Gaussian profile with identities and with reference points
** that were computed with 60 digits. The tests also cover the inverses and the domain of the
** profile. tests/functions/test_planning.py compares a wide grid with mpmath.
*/
#include "check.h"

#include <float.h>
#include <stdint.h>

#include <gsl/gsl_errno.h>

#include "math/gaussian.h"

static const double rates[] = {1e-12, 1e-8, 1e-3, 0.1249, 0.125, 0.1251, 0.5, 3.0, 50.0, 1e3, 1e6};
static const double deltas[] = {1e-300, 1e-200, 1e-100, 1e-30, 1e-12,   1e-6,
                                1e-3,   0.1,    0.5,    0.9,   0.999999};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Compares with reference points of 17 digits, and with extreme points computed with mpmath. */
static void reference_points(void) {
  CHECK_CLOSE(gaussian_epsilon(0.5, 1e-6), 4.88655411746221201, 1e-14);
  CHECK_CLOSE(1.0 / sqrt(2.0 * gaussian_rate(1.0, 1e-6)), 4.22467888932683529, 1e-14);
  CHECK_CLOSE(gaussian_delta(0.5 * 0.1 * 0.1, 3.0), 7.30480610175467594e-200, 1e-12);
}

/* theta_1(mu) = erf(mu/(2 sqrt 2)). gaussian.c does not use this formula. */
static void total_variation_at_epsilon_zero(void) {
  for (size_t i = 0; i < COUNT(rates); i++) {
    CHECK_CLOSE(gaussian_delta(rates[i], 0.0), erf(0.5 * sqrt(rates[i])), 2e-14);
  }
}

/*
** At epsilon = rate, A of gaussian.c is 0 and delta = 1/2 - M(mu)/sqrt(2 pi). The test computes
** M(mu) from erfc(), for arguments at which erfc() is accurate.
*/
static void profile_at_its_median(void) {
  for (double mu = 0.1; mu < 5.0; mu += 0.1) {
    double rate = 0.5 * mu * mu;
    double want = 0.5 - 0.5 * exp(rate) * erfc(mu * M_SQRT1_2);
    CHECK_CLOSE(gaussian_delta(rate, rate), want, 1e-13);
  }
}

/* For moderate arguments, the formula as printed in the paper has an absolute error of 1e-15. */
static void agrees_with_the_printed_formula(void) {
  for (double mu = 0.05; mu < 8.0; mu *= 1.3) {
    for (double epsilon = 0.0; epsilon < 10.0; epsilon += 0.37) {
      double a = epsilon / mu - 0.5 * mu;
      double want = 0.5 * erfc(a * M_SQRT1_2) - 0.5 * exp(epsilon) * erfc((a + mu) * M_SQRT1_2);
      double got = gaussian_delta(0.5 * mu * mu, epsilon);
      CHECK(fabs(got - want) < 1e-14, "mu %g epsilon %g: %.17g, printed %.17g", mu, epsilon, got,
            want);
    }
  }
}

/*
** The derivative d delta/d mu must be phi(epsilon/mu - mu/2). The test computes this derivative
** from central differences with Richardson's extrapolation. The profile must not jump where the
** code changes its method.
*/
static void derivative_in_mu_is_a_density(void) {
  for (double mu = 0.02; mu < 30.0; mu *= 1.07) {
    for (double a = -3.0; a < 20.0; a += 0.61) {
      double epsilon = mu * (a + 0.5 * mu);
      if (epsilon < 0.0) continue;
      double half = 1e-3 * mu / (1.0 + fabs(a) * (epsilon / mu + mu)), slope[2];
      for (int i = 0; i < 2; i++) {
        double h = half * (1 + i), up = mu + h, down = mu - h;
        slope[i] =
            (gaussian_delta(0.5 * up * up, epsilon) - gaussian_delta(0.5 * down * down, epsilon)) /
            (2.0 * h);
      }
      double want = exp(-0.5 * a * a) * M_SQRT1_2 * M_2_SQRTPI * 0.5;
      double noise = 1e-15 * gaussian_delta(0.5 * mu * mu, epsilon) * (10.0 + a * a) / half;
      double got = (4.0 * slope[0] - slope[1]) / 3.0;
      CHECK(fabs(got - want) <= 1e-7 * want + noise, "mu %g a %g: %.10g, density %.10g", mu, a, got,
            want);
    }
  }
}

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

static void inverses_return(void) {
  for (size_t i = 0; i < COUNT(rates); i++) {
    for (size_t j = 0; j < COUNT(deltas); j++) {
      double epsilon = gaussian_epsilon(rates[i], deltas[j]);
      if (epsilon == 0.0) {
        CHECK(gaussian_delta(rates[i], 0.0) <= deltas[j], "rate %g delta %g", rates[i], deltas[j]);
        continue;
      }
      CHECK_CLOSE(gaussian_rate(epsilon, deltas[j]), rates[i], 1e-13);
      /*
      ** epsilon is a rounded double. The relative error of delta is the relative rounding error of
      ** epsilon times the condition number 2 epsilon A/mu.
      */
      double mu = sqrt(2.0 * rates[i]), a = (epsilon - rates[i]) / mu;
      double rounding = DBL_EPSILON * (10.0 + epsilon / mu * (2.0 + fabs(a)));
      CHECK_CLOSE(gaussian_delta(rates[i], epsilon), deltas[j], 10.0 * rounding);
    }
  }
}

static void zero_epsilon_clamp(void) {
  CHECK_CLOSE(gaussian_epsilon(1e-12, 0.1), 0.0, 0.0);
  double total = gaussian_delta(0.02, 0.0);
  CHECK_CLOSE(gaussian_epsilon(0.02, total * (1.0 + 1e-9)), 0.0, 0.0);
  CHECK(gaussian_epsilon(0.02, total * (1.0 - 1e-9)) > 0.0, "clamped too early");
  CHECK_CLOSE(gaussian_rate(0.0, total), 0.02, 1e-14);
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
  RUN(reference_points);
  RUN(total_variation_at_epsilon_zero);
  RUN(profile_at_its_median);
  RUN(agrees_with_the_printed_formula);
  RUN(derivative_in_mu_is_a_density);
  RUN(logarithm_agrees_and_outlives_delta);
  RUN(monotone_in_rate_and_epsilon);
  RUN(inverses_return);
  RUN(zero_epsilon_clamp);
  RUN(extremes);
  RUN(outside_the_domain_is_nan);
  RUN(lattice_slack);
  RUN(slack_beside_a_rate);
  FINISH();
}
