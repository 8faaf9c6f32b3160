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

static struct view plain_view(uint64_t clock, int granularity) {
  return (struct view){.granularity = granularity, .clock = clock};
}

static struct view ou_view(uint64_t clock, int granularity, double radius, double theta, double rho,
                           int dimension) {
  return (struct view){granularity, 0, clock, 1, 0, radius, theta, rho, dimension};
}

/* What a release of one sum shows of a point. */
static struct estimate shown(const struct view *view, int64_t point) {
  struct question question = {.family = FAMILY_SUM, .clip = 1};
  struct shape shape;
  struct reading reading = {.question = &question, .shape = &shape, .view = *view, .cells = 1};
  struct estimate estimate = {0, 0, NAN, NAN, NAN, NAN};
  shape_make(&shape, &question, 1, 0);
  CHECK(estimate_room(&reading) == 1 && estimate_point(&reading, &point, &estimate) == 1, "one number");
  CHECK(estimate.cell == 0 && estimate.component == 0, "its place");
  return estimate;
}

static void shrink_of_a_radius(void) {
  const double radii[] = {1e-140, 0.5, 100, 1e9, 1e140};
  for (int i = 0; i < 4; i++) {
    for (int g = 0; g < 6; g++) {
      for (int r = 0; r < 5; r++) {
        for (int d = 1; d <= 1000; d *= 10) {
          long double square = (long double)radii[r] * (long double)radii[r];
          long double tau = ldexpl((long double)clocks[i], 2 * granularities[g]);
          long double want = square / (square + d * tau);
          struct view view = ou_view(clocks[i], granularities[g], radii[r], NAN, NAN, d);
          double got = estimate_shrink(&view, estimate_variance(&view));
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
          struct view view = ou_view(clocks[i], granularities[g], radius, thetas[t], rhos[r], 3);
          double got = estimate_shrink(&view, estimate_variance(&view));
          CHECK_CLOSE(got, (double)want, 1e-12);
        }
      }
    }
  }
}

static void no_shrink(void) {
  struct view view = plain_view(1 << 20, 0);
  CHECK(estimate_shrink(&view, estimate_variance(&view)) == 1, "not OU");
}

/* A Gaussian value is the lattice point itself, to the last bit where it fits a double. */
static void values(void) {
  const int64_t points[] = {0, 1, -1, 123456789, -((int64_t)1 << 52) + 1, (int64_t)1 << 62};
  for (int p = 0; p < 6; p++) {
    for (int g = 0; g < 6; g++) {
      struct view plain = plain_view(clocks[0], granularities[g]);
      CHECK(shown(&plain, points[p]).value == ldexp((double)points[p], granularities[g]),
            "point %lld", (long long)points[p]);
    }
    for (int g = 1; g < 5; g++) {
      long double tau = ldexpl((long double)clocks[0], 2 * granularities[g]);
      double radius = (double)sqrtl(tau * 3 / 7); /* a shrink of 3/10 */
      struct view view = ou_view(clocks[0], granularities[g], radius, NAN, NAN, 1);
      view.centre = 17.25;
      long double square = (long double)radius * radius, shrink = square / (square + tau);
      long double x = ldexpl((long double)points[p], granularities[g]);
      long double want = 17.25L + shrink * (x - 17.25L), size = 17.25L + fabsl(x);
      CHECK(fabsl((long double)shown(&view, points[p]).value - want) <= 1e-15L * size,
            "point %lld: %.17g", (long long)points[p], shown(&view, points[p]).value);
    }
  }
  struct view all_centre = ou_view(clocks[0], 470, 1e-140, NAN, NAN, 1); /* the shrink is nothing */
  all_centre.centre = 42;
  CHECK(shown(&all_centre, 1000).value == 42, "the centre");
}

static void standard_deviations(void) {
  for (int i = 0; i < 4; i++) {
    for (int g = 1; g < 5; g++) {
      long double want = ldexpl(sqrtl((long double)clocks[i]), granularities[g]);
      struct view plain = plain_view(clocks[i], granularities[g]);
      struct view shrunk = ou_view(clocks[i], granularities[g], (double)(want / 3), NAN, NAN, 1);
      check_up(estimate_stddev(&plain), want, "stddev");
      check_up(shown(&plain, 5).stddev, want, "stddev of a value");
      CHECK_CLOSE(estimate_stddev(&shrunk), (double)(want / 10), 1e-12);
      CHECK_CLOSE(shown(&shrunk, 5).stddev, (double)(want / 10), 1e-12);
      struct estimate value = shown(&plain, 5);
      check_up(value.high - value.value, 1.959963984540054235L * want, "interval");
      check_up(value.value - value.low, 1.959963984540054235L * want, "interval");
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
