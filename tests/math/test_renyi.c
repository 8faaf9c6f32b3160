/* test_renyi.c: tests the stored orders, the limit at an order, and the largest rate over all real
** orders. tests/functions/test_planning.py compares the least epsilon with mpmath. */
#include "check.h"
#include "random.h"

#include <float.h>

#include <gsl/gsl_errno.h>

#include "math/math.h"

static const double deltas[] = {1e-300, 1e-100, 1e-12, 1e-6, 1e-2, 0.3, 0.5, 0.7, 0.99};
static const double epsilons[] = {1e-9, 1e-3, 0.1, 1.0, 10.0, 800.0, 1e5};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Returns the epsilon of the conversion in math.h at one order. */
static double converted(double alpha, double spent, double delta) {
  return spent + log1p(-1.0 / alpha) - (log(delta) + log(alpha)) / (alpha - 1.0);
}

static void orders_are_the_stored_grid(void) {
  for (int k = -32; k <= 80; k++) {
    CHECK_CLOSE(renyi_order(k + 32), 1.0 + exp2(k / 4.0), DBL_EPSILON);
  }
  CHECK(renyi_order(32) == 2.0 && renyi_order(0) == 1.0 + 0x1p-8, "exact powers");
  CHECK(renyi_order(RENYI_ORDERS - 1) == INFINITY, "the last order is pure privacy");
  CHECK(isnan(renyi_order(-1)) && isnan(renyi_order(RENYI_ORDERS)), "outside the grid");
}

static void allowed_inverts_the_conversion(void) {
  for (int k = 0; k < RENYI_ORDERS - 1; k++) {
    for (size_t i = 0; i < COUNT(epsilons); i++) {
      for (size_t j = 0; j < COUNT(deltas); j++) {
        double alpha = renyi_order(k), allowed = renyi_allowed(alpha, epsilons[i], deltas[j]);
        double largest = fabs(allowed) + fabs(log(deltas[j])) / (alpha - 1.0);
        CHECK(fabs(converted(alpha, allowed, deltas[j]) - epsilons[i]) <=
                  1e-14 * (largest + epsilons[i] + log(alpha)),
              "order %g epsilon %g delta %g", alpha, epsilons[i], deltas[j]);
      }
    }
  }
  CHECK_CLOSE(renyi_allowed(INFINITY, 3.0, 1e-6), 3.0, 0.0);
  CHECK(renyi_allowed(1.5, 1.0, 1e-6) < 0.0, "an order that cannot certify epsilon at all");
}

static void rate_and_epsilon_are_inverse(void) {
  for (size_t i = 0; i < COUNT(epsilons); i++) {
    for (size_t j = 0; j < COUNT(deltas); j++) {
      double rate = zcdp_rate(epsilons[i], deltas[j], 0);
      if (rate < 1e-280) continue;
      CHECK(fabs(zcdp_epsilon(rate, deltas[j]) - epsilons[i]) <= 2e-14 * (epsilons[i] + 1.0),
            "epsilon %g delta %g", epsilons[i], deltas[j]);
      CHECK(zcdp_epsilon(1.001 * rate, deltas[j]) > epsilons[i], "a larger rate would do");
    }
  }
}

/* zcdp_rate() returns an order at which the budget admits the rate. At no stored order does the
** budget admit a larger rate. */
static void rate_is_the_best_order(void) {
  for (size_t i = 0; i < COUNT(epsilons); i++) {
    for (size_t j = 0; j < COUNT(deltas); j++) {
      double order, rate = zcdp_rate(epsilons[i], deltas[j], &order);
      CHECK(order > 1.0, "order %g", order);
      if (order < 1e12 && order - 1.0 > 1e-3) {
        CHECK_CLOSE(renyi_allowed(order, epsilons[i], deltas[j]) / order, rate, 1e-12);
      }
      for (int k = 0; k < RENYI_ORDERS - 1; k++) {
        double alpha = renyi_order(k);
        double other = renyi_allowed(alpha, epsilons[i], deltas[j]) / alpha;
        CHECK(other <= rate * (1.0 + 1e-13) + 1e-15 * epsilons[i], "order %g allows %g, not %g",
              alpha, other, rate);
      }
    }
  }
}

static void outside_the_domain_is_nan(void) {
  const double not_a_delta[] = {0.0, 1.0, -1.0, NAN, INFINITY};
  for (size_t i = 0; i < COUNT(not_a_delta); i++) {
    double order = 0.0;
    CHECK(isnan(renyi_allowed(2.0, 1.0, not_a_delta[i])), "delta %g", not_a_delta[i]);
    CHECK(isnan(zcdp_epsilon(1.0, not_a_delta[i])), "delta %g", not_a_delta[i]);
    CHECK(isnan(zcdp_rate(1.0, not_a_delta[i], &order)) && isnan(order), "delta %g",
          not_a_delta[i]);
  }
  CHECK(isnan(renyi_allowed(1.0, 1.0, 0.1)) && isnan(renyi_allowed(NAN, 1.0, 0.1)), "alpha");
  CHECK(isnan(renyi_allowed(2.0, -1.0, 0.1)) && isnan(renyi_allowed(2.0, NAN, 0.1)), "epsilon");
  CHECK(isnan(zcdp_epsilon(-1.0, 0.1)) && isnan(zcdp_epsilon(INFINITY, 0.1)), "rate");
  CHECK(isnan(zcdp_epsilon(NAN, 0.1)), "rate");
  CHECK(isnan(zcdp_rate(0.0, 0.1, 0)) && isnan(zcdp_rate(NAN, 0.1, 0)), "epsilon");
  CHECK(isnan(zcdp_rate(INFINITY, 0.1, 0)), "epsilon");
}

static void extremes(void) {
  CHECK_CLOSE(zcdp_epsilon(0.0, 0.1), 0.0, 0.0);
  CHECK_CLOSE(zcdp_epsilon(1.0, 1.0 - DBL_EPSILON), 0.0, 0.0); /* rate < ln(1 + 1/u) */
  CHECK(zcdp_epsilon(DBL_MIN, 5e-324) >= 0.0, "smallest arguments");
  CHECK(zcdp_epsilon(1e300, 5e-324) >= 1e300, "largest rate");
  CHECK(zcdp_rate(5e-324, 5e-324, 0) >= 0.0, "smallest arguments");
  CHECK_CLOSE(zcdp_rate(1e300, 1e-6, 0), 1e300, 1e-13);
}

/* Sets a curve to random values for which (alpha - 1) r(alpha) is convex and r does not fall. */
static void random_curve(double curve[RENYI_ORDERS]) {
  double rate = exp(6 * uniform() - 5), most = random_bits() % 2 ? INFINITY : 10 * uniform();
  for (int k = 0; k < RENYI_ORDERS; k++) curve[k] = fmin(rate * renyi_order(k), most);
}

static void curves_between_the_orders(void) {
  for (int run = 0; run < 60; run++) {
    double curve[RENYI_ORDERS];
    random_curve(curve);
    int k = (int)(random_bits() % (RENYI_ORDERS - 2));
    double low = renyi_order(k), high = renyi_order(k + 1), alpha = low + uniform() * (high - low);
    double chord =
        ((high - alpha) * (low - 1) * curve[k] + (alpha - low) * (high - 1) * curve[k + 1]) /
        ((high - low) * (alpha - 1));
    if (k < RENYI_ORDERS - 3 && isfinite(chord))
      CHECK_CLOSE(renyi_curve_at(curve, alpha), chord, 1e-9);
    CHECK_CLOSE(renyi_curve_at(curve, low), curve[k], 0);
    CHECK_CLOSE(renyi_curve_at(curve, 1 + 0x1p-9 * uniform()), curve[0], 0);
    CHECK_CLOSE(renyi_curve_at(curve, 0x1p21), curve[RENYI_ORDERS - 1], 0);
    CHECK_CLOSE(renyi_curve_at(curve, INFINITY), curve[RENYI_ORDERS - 1], 0);
    CHECK_CLOSE(renyi_curve_at(curve, NAN), INFINITY, 0);

    double rate = run % 3 ? 0 : uniform(), delta = pow(10, -1 - 12 * uniform());
    double want = rate == 0 ? curve[RENYI_ORDERS - 1] : INFINITY;
    for (double u = 0x1p-8; u < 0x1p20; u *= 1.001)
      want = fmin(want, converted(1 + u, (1 + u) * rate + renyi_curve_at(curve, 1 + u), delta));
    double got = renyi_epsilon(rate, curve, delta);
    CHECK(got <= fmax(want, 0) + 1e-12 && got >= want - 1e-3 * (1 + want), "got %g, want %g", got,
          want);
  }
  double none[RENYI_ORDERS] = {0}, bad[RENYI_ORDERS] = {[5] = NAN};
  CHECK_CLOSE(renyi_epsilon(0.1, none, 1e-6), zcdp_epsilon(0.1, 1e-6), 0);
  CHECK(isnan(renyi_epsilon(0.1, bad, 1e-6)) && isnan(renyi_epsilon(-1, none, 1e-6)),
        "not a number");
  CHECK(isnan(renyi_epsilon(0.1, none, 0)) && isnan(renyi_epsilon(0.1, none, 1)), "delta");
}

int main(void) {
  gsl_set_error_handler_off();
  RUN(orders_are_the_stored_grid);
  RUN(allowed_inverts_the_conversion);
  RUN(rate_and_epsilon_are_inverse);
  RUN(rate_is_the_best_order);
  RUN(outside_the_domain_is_nan);
  RUN(extremes);
  RUN(curves_between_the_orders);
  FINISH();
}
