/* test_estimate.c: estimate.h against closed forms in long double. */
#include "check.h"

#include <stdint.h>

#include "release/estimate.h"

/* Published numbers are rounded up, by less than 1e-12 of them. */
static void check_up(double got, long double want, const char *what) {
  CHECK((long double)got >= want && (long double)got <= want * (1 + 1e-12L),
        "%s: got %.17g, want %.19Lg", what, got, want);
}

static const uint64_t clocks[] = {(uint64_t)1 << 20, ((uint64_t)1 << 40) + 12345, 2199023255553u,
                                  ((uint64_t)1 << 62) - 1};
static const int granularities[] = {-520, -41, -20, 0, 13, 470};

static void shrink_of_a_radius(void) {
  const double radii[] = {1e-140, 0.5, 100, 1e9, 1e140};
  for (int i = 0; i < 4; i++) {
    for (int g = 0; g < 6; g++) {
      for (int r = 0; r < 5; r++) {
        for (int d = 1; d <= 1000; d *= 10) {
          long double square = (long double)radii[r] * (long double)radii[r];
          long double tau = ldexpl((long double)clocks[i], 2 * granularities[g]);
          long double want = square / (square + d * tau);
          double got = estimate_shrink(clocks[i], granularities[g], d, radii[r], NAN, NAN);
          if (want > 1e-300L) CHECK_CLOSE(got, (double)want, 1e-12);
          CHECK(got >= 0 && got <= 1, "shrink %g", got);
        }
      }
    }
  }
}

static void shrink_of_a_process(void) {
  const double thetas[] = {1e-9, 0.3, 1, 50}, rhos[] = {1e-3, 1, 1e6};
  for (int i = 0; i < 4; i++) {
    for (int g = 1; g < 5; g++) {
      for (int t = 0; t < 4; t++) {
        for (int r = 0; r < 3; r++) {
          long double tau = ldexpl((long double)clocks[i], 2 * granularities[g]);
          long double rho = rhos[r];
          long double want = 1 / sqrtl(1 + thetas[t] * tau / (rho * rho));
          double radius = r ? NAN : 5; /* theta decides where both are given */
          double got = estimate_shrink(clocks[i], granularities[g], 3, radius, thetas[t], rhos[r]);
          CHECK_CLOSE(got, (double)want, 1e-12);
        }
      }
    }
  }
}

static void no_shrink(void) {
  CHECK(estimate_shrink(1 << 20, 0, 1, NAN, NAN, NAN) == 1, "neither radius nor theta");
}

/* A Gaussian value is the lattice point itself, to the last bit where it fits a double. */
static void values(void) {
  const int64_t points[] = {0, 1, -1, 123456789, -((int64_t)1 << 52) + 1, (int64_t)1 << 62};
  for (int p = 0; p < 6; p++) {
    for (int g = 0; g < 6; g++) {
      struct view plain = {granularities[g], 0, 1};
      CHECK(estimate_value(&plain, points[p]) == ldexp((double)points[p], granularities[g]),
            "point %lld", (long long)points[p]);
    }
    for (int g = 1; g < 5; g++) {
      struct view view = {granularities[g], 17.25, 0.3};
      long double x = ldexpl((long double)points[p], granularities[g]);
      long double want = 17.25L + (long double)0.3 * (x - 17.25L);
      long double size = 17.25L + fabsl(x);
      CHECK(fabsl((long double)estimate_value(&view, points[p]) - want) <= 4e-16L * size,
            "point %lld: %.17g", (long long)points[p], estimate_value(&view, points[p]));
    }
  }
  struct view all_centre = {0, 42, 0}; /* a shrink that underflowed */
  CHECK(estimate_value(&all_centre, 1000) == 42, "the centre");
}

static void standard_deviations(void) {
  for (int i = 0; i < 4; i++) {
    for (int g = 0; g < 6; g++) {
      struct view plain = {granularities[g], 0, 1}, shrunk = {granularities[g], 5, 0.1};
      long double want = ldexpl(sqrtl((long double)clocks[i]), granularities[g]);
      check_up(estimate_stddev(&plain, clocks[i]), want, "stddev");
      check_up(estimate_stddev(&shrunk, clocks[i]), (long double)0.1 * want, "shrunk stddev");
    }
  }
}

/* P(|Z| <= width), in long double. */
static long double coverage(double half_width, double stddev) {
  return erfl((long double)half_width / ((long double)stddev * sqrtl(2)));
}

static void half_widths(void) {
  check_up(estimate_half_width(1, 0.95), 1.959963984540054235L, "95%");
  check_up(estimate_half_width(3, 0.5), 3 * 0.674489750196081743L, "50%");
  const double confidences[] = {1e-9, 0.01, 0.3, 0.5, 0.68, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9};
  for (int i = 0; i < 10; i++) {
    double width = estimate_half_width(2.5, confidences[i]);
    long double outside = 1 - (long double)confidences[i];
    long double got = erfcl((long double)width / (2.5L * sqrtl(2)));
    CHECK(fabsl(got - outside) <= 1e-11L * outside * (1 + (long double)(width * width)),
          "%g: outside %Lg", confidences[i], got);
    CHECK(coverage(width, 2.5) >= (long double)confidences[i] - 0x1p-53L, "%g: covers %Lg",
          confidences[i], coverage(width, 2.5));
  }
  CHECK(isfinite(estimate_half_width(1, nextafter(1, 0))), "nearly certain");
  CHECK(estimate_half_width(0, 0.95) == 0, "no noise");
}

int main(void) {
  RUN(shrink_of_a_radius);
  RUN(shrink_of_a_process);
  RUN(no_shrink);
  RUN(values);
  RUN(standard_deviations);
  RUN(half_widths);
  FINISH();
}
