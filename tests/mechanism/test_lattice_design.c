/* test_lattice_design.c: tests mechanism.h. The tests cover the lattice over its whole domain, the
** clocks, and the joint distribution of the points of a path. tests/sums/test_neighbour_vectors.c
** compares the sensitivity with neighbours.
**
** The statistical tests compare moments of a million draws and allow seven standard errors of the
** estimate. The standard error of a variance is 0.14%, so a test misses an error of 2% in a
** variance with probability below 1e-10. */
#include "check.h"
#include "random.h"

#include <stdint.h>

#include "math/math.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "scalar.h"

static uint64_t gaussian_clock(uint64_t sensitivity, double rate) {
  return gaussian_noise.clock(sensitivity, rate);
}

static double log_uniform(double low, double high) {
  double x = exp(log(low) + uniform() * (log(high) - log(low)));
  return x < low ? low : x > high ? high : x;
}

/* ---- design ---------------------------------------------------------------------------------- */

/* Compares 2 rate V with s^2 without rounding, and returns -1, 0 or 1. The rate is below 2^21, so
** shift > 0. */
static int compare_cost(double rate, uint64_t variance, uint64_t sensitivity) {
  int exponent;
  uint64_t mantissa = (uint64_t)ldexp(frexp(rate, &exponent), 53);
  int shift = 52 - exponent; /* 2 rate V = mantissa V 2^-shift */
  uint128 product = (uint128)mantissa * variance, square = (uint128)sensitivity * sensitivity;
  uint128 whole = product >> shift, rest = product - (whole << shift);
  if (whole != square) return whole < square ? -1 : 1;
  return rest > 0;
}

static void check_design(double clip, double rate, int nonnegative, int replace) {
  struct design design;
  scalar_design(&design, clip, nonnegative, replace, rate);
  long double distance = (replace && !nonnegative ? 2.0L : 1.0L) * clip;
  long double steps = ldexpl(distance / sqrtl(2.0L * rate), -design.granularity);
  CHECK(steps >= 0x1p20L * (1 - 1e-15L) && steps < 0x1p21L * (1 + 1e-15L),
        "clip %a rate %a: sigma %Lg", clip, rate, steps);
  CHECK(design.shift >= 0 && design.shift <= 100, "clip %a rate %a: shift %d", clip, rate,
        design.shift);
  struct bounds bounds = scalar_bounds(clip, nonnegative);
  /* The bounds equal the clip exactly, on a lattice 2^shift times finer than that of the
  ** release. */
  double fine = ldexp(1, design.granularity - design.shift);
  CHECK(bounds.high * fine == clip && bounds.low * fine == (nonnegative ? 0 : -clip),
        "clip %a rate %a: bounds %g %g", clip, rate, bounds.low, bounds.high);
  CHECK(bounds.scale * fine == 1, "clip %a: scale %a", clip, bounds.scale);
  uint128 moved = (uint128)bounds.high_steps * (replace && !nonnegative ? 2 : 1);
  CHECK(design.sensitivity == (uint64_t)(moved >> design.shift) + 1,
        "clip %a rate %a: sensitivity %llu", clip, rate, (unsigned long long)design.sensitivity);
  CHECK(design.sensitivity < (uint64_t)1 << 32, "sensitivity %llu",
        (unsigned long long)design.sensitivity);

  uint64_t variance = gaussian_clock(design.sensitivity, rate), s = design.sensitivity;
  CHECK(variance >= LATTICE_MIN_VARIANCE && variance < LATTICE_VARIANCE_END,
        "clip %a rate %a: V %llu", clip, rate, (unsigned long long)variance);
  /* V = ceil(s^2/(2 rate)) + 1: the variance V - 1 would still be large enough, and V - 2 would
  ** not. */
  CHECK(compare_cost(rate, variance - 1, s) >= 0, "clip %a rate %a: V too small", clip, rate);
  CHECK(compare_cost(rate, variance - 2, s) < 0, "clip %a rate %a: V too large", clip, rate);
  long double cost = (long double)s * (long double)s / (2 * ((long double)variance - 1 / 12.0L));
  CHECK((long double)lattice_rate(s, variance) >= cost, "clip %a rate %a: the charged rate", clip,
        rate);
  CHECK(lattice_rate(s, variance) <= rate * (1 + 0x1p-48), "clip %a rate %a: charges more", clip,
        rate);
}

static void designs_over_the_whole_domain(void) {
  const double clips[] = {
      LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 1, nextafter(1, 0), nextafter(1, 2), 240, 0.1};
  const double rates[] = {DESIGN_MIN_RATE,
                          DESIGN_MAX_RATE,
                          0.5,
                          nextafter(0.5, 0),
                          nextafter(0.5, 1),
                          2,
                          0.125,
                          1e-6,
                          0.3};
  for (int flags = 0; flags < 4; flags++) {
    for (int i = 0; i < 7; i++) {
      for (int j = 0; j < 9; j++) check_design(clips[i], rates[j], flags & 1, flags >> 1);
    }
    for (int i = 0; i < 50000; i++) {
      check_design(log_uniform(LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP),
                   log_uniform(DESIGN_MIN_RATE, DESIGN_MAX_RATE), flags & 1, flags >> 1);
    }
  }
}

/* At ordinary rates, the standard deviation of the noise is within 1% of the requested standard
** deviation. */
static void noise_is_not_wasted(void) {
  for (int i = 0; i < 20000; i++) {
    double clip = log_uniform(1e-6, 1e9), rate = log_uniform(1e-8, 1e6);
    struct design design;
    scalar_design(&design, clip, i & 1, i >> 1 & 1, rate);
    uint64_t variance = gaussian_clock(design.sensitivity, rate);
    double wanted = ((i & 3) == 2 ? 2 : 1) * clip / sqrt(2 * rate);
    double got = ldexp(sqrt((double)variance), design.granularity);
    CHECK(got >= wanted && got <= wanted * 1.01, "clip %g rate %g: sigma %g, wanted %g", clip, rate,
          got, wanted);
  }
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void outward_steps(void) {
  for (int i = 0; i < 100000; i++) {
    struct design design;
    double rate = log_uniform(1e-6, DESIGN_MAX_RATE);
    scalar_design(&design, 1, 0, 0, rate);
    uint64_t inner = gaussian_clock(design.sensitivity, rate), before = inner;
    for (int step = 0; step < 4; step++) {
      /* The rates of the two tiers are far apart, close together, or neighbouring doubles. */
      double next = i % 3 == 0   ? rate * uniform()
                    : i % 3 == 1 ? rate * (1 - 1e-12 * uniform())
                                 : nextafter(rate, 0);
      if (!(next >= DESIGN_MIN_RATE)) break;
      uint64_t outer = gaussian_noise.outward(design.sensitivity, next, before);
      uint64_t wanted = gaussian_clock(design.sensitivity, next);
      if (outer == 0) {
        CHECK(wanted == 0, "rate %g after %g is refused", next, rate);
        break;
      }
      CHECK(outer >= before + LATTICE_MIN_STEP && outer < LATTICE_VARIANCE_END, "step %llu",
            (unsigned long long)(outer - before));
      CHECK(outer >= wanted && compare_cost(next, outer, design.sensitivity) >= 0,
            "rate %g costs more", next);
      CHECK(outer == wanted || outer == before + LATTICE_MIN_STEP, "more noise than needed");
      before = outer;
      rate = next;
    }
  }
}

static void outward_to_the_end(void) {
  struct design design;
  scalar_design(&design, 1, 0, 0, 1);
  uint64_t s = design.sensitivity, inner = gaussian_clock(s, 1), last = inner;
  CHECK(gaussian_noise.outward(s, 1e-6, inner) != 0, "a millionth of the rate");
  CHECK(gaussian_noise.outward(s, 1e-12, inner) == 0, "beyond the lattice");
  /* As the rate falls, the variance grows. Below some rate, all rates are refused. */
  for (double rate = 1; rate > 1e-9; rate *= 0.99) {
    uint64_t outer = gaussian_noise.outward(s, rate, inner);
    CHECK(last == 0 ? outer == 0 : outer == 0 || outer >= last, "rate %g", rate);
    last = outer;
  }
  CHECK(last == 0, "never refused");
  uint64_t end = LATTICE_VARIANCE_END;
  CHECK(gaussian_noise.outward(s, 0.5, end - LATTICE_MIN_STEP - 1) == end - 1,
        "the last admissible point");
  CHECK(gaussian_noise.outward(s, 0.5, end - LATTICE_MIN_STEP) == 0, "one beyond it");
  CHECK(gaussian_noise.outward(s, 0.5, end - 1) == 0, "at the end");
}

static void inward_steps(void) {
  int drawn = 0, same = 0, refused = 0;
  for (int i = 0; i < 200000; i++) {
    struct design design;
    double first = log_uniform(1e-9, 1);
    scalar_design(&design, 1, 0, 0, first);
    uint64_t s = design.sensitivity, outer = gaussian_clock(s, first), fresh = 1;
    double rate = i % 3 == 0   ? log_uniform(first, 1e9 * first)
                  : i % 3 == 1 ? first * (1 + 1e-9 * uniform())
                               : nextafter(first, 1);
    CHECK(path_inward(s, first, outer, &fresh) == outer && fresh == 0, "the same rate");
    uint64_t inner = path_inward(s, rate, outer, &fresh);
    if (inner == 0) {
      refused++;
      CHECK(gaussian_clock(s, rate) < LATTICE_MIN_VARIANCE, "rate %g after %g is refused", rate,
            first);
    } else if (fresh == 0) {
      same++;
      CHECK(inner == outer, "no draw, but another point");
      CHECK(rate < first * (1 + 1e-3), "no draw from %g to %g", first, rate);
    } else {
      drawn++;
      CHECK(inner == gaussian_clock(s, rate) && inner < outer && inner >= LATTICE_MIN_VARIANCE,
            "rate %g after %g: %llu", rate, first, (unsigned long long)inner);
      CHECK(fresh >= inner && fresh < LATTICE_VARIANCE_END, "W = %llu", (unsigned long long)fresh);
      /* W is `fresh`, Vt is `outer` and Vs is `inner`. 1/W + 1/Vt <= 1/Vs holds, and would not hold
      ** for W - 1. */
      CHECK(((uint128)outer + fresh) * inner <= (uint128)fresh * outer, "the point costs more");
      CHECK(((uint128)outer + fresh - 1) * inner > (uint128)(fresh - 1) * outer, "W is too large");
      /* The draw costs at most the difference between the rates of the two points. */
      double pays = lattice_rate(s, fresh),
             difference = lattice_rate(s, inner) - lattice_rate(s, outer);
      CHECK(pays <= difference + 1e-12 * lattice_rate(s, inner), "pays %g of %g", pays, difference);
    }
  }
  CHECK(drawn > 1000 && same > 1000 && refused > 1000, "%d drawn, %d same, %d refused", drawn, same,
        refused);
}

/* ---- the distribution of a path -------------------------------------------------------------- */

enum { POINTS = 3, DIMENSION = 100, VECTORS = 10000 };
#define DRAWS ((double)DIMENSION * VECTORS)

/* Sums over all draws of the noise of each point, and of the products of two noises. */
struct moments {
  double mean[POINTS], second[POINTS][POINTS];
};

static void add_moments(struct moments *moments, int64_t points[POINTS][DIMENSION],
                        const int64_t *totals) {
  for (int c = 0; c < DIMENSION; c++) {
    double x[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = (double)(points[i][c] - totals[c]);
    for (int i = 0; i < POINTS; i++) {
      moments->mean[i] += x[i];
      for (int j = 0; j <= i; j++) moments->second[i][j] += x[i] * x[j];
    }
  }
}

/* The allowed number of standard errors. Each of 14 moments of two different paths, estimated from
** a million draws, exceeds this number by chance with probability 2.6e-12. */
#define SIGMAS 7

/* The points must have the covariances of Brownian motion at clocks V0 < V1 < V2: Cov(Xi, Xj) =
** V_min(i,j). */
static void check_moments(const struct moments *moments, const uint64_t *clocks) {
  for (int i = 0; i < POINTS; i++) {
    double v = (double)clocks[i], mean = moments->mean[i] / DRAWS;
    CHECK(fabs(mean) <= SIGMAS * sqrt(v / DRAWS), "mean of point %d: %g standard errors", i,
          mean / sqrt(v / DRAWS));
    for (int j = 0; j <= i; j++) {
      double inner = (double)clocks[j], got = moments->second[i][j] / DRAWS;
      double error = sqrt((v * inner + inner * inner) / DRAWS);
      CHECK(fabs(got - inner) <= SIGMAS * error,
            "covariance of points %d and %d is %g of what it should be", i, j, got / inner);
    }
  }
  /* The step from one point to the next is independent of the inner point. */
  for (int i = 1; i < POINTS; i++) {
    double inner = (double)clocks[i - 1], step = (double)(clocks[i] - clocks[i - 1]);
    double got = (moments->second[i][i - 1] - moments->second[i - 1][i - 1]) / DRAWS;
    CHECK(fabs(got) <= SIGMAS * sqrt(inner * step / DRAWS), "step %d goes with the inner point: %g",
          i, got / sqrt(inner * step));
    double variance =
        (moments->second[i][i] - 2 * moments->second[i][i - 1] + moments->second[i - 1][i - 1]) /
        DRAWS;
    CHECK(fabs(variance / step - 1) <= SIGMAS * sqrt(2 / DRAWS), "variance of step %d is %g of it",
          i, variance / step);
  }
  /* The step is also independent of earlier points, because the path is a Markov chain. */
  double first = (double)clocks[0], last = (double)(clocks[2] - clocks[1]);
  double got = (moments->second[2][0] - moments->second[1][0]) / DRAWS;
  CHECK(fabs(got) <= SIGMAS * sqrt(first * last / DRAWS),
        "the last step goes with the first point");
}

static void some_totals(int64_t *totals) {
  for (int c = 0; c < DIMENSION; c++)
    totals[c] = (int64_t)(random_bits() >> 20) - ((int64_t)1 << 43);
}

static void draw_then_diffuse(void) {
  const double rates[POINTS] = {1, 0.6, 0.1};
  struct design design;
  scalar_design(&design, 1, 0, 0, rates[0]);
  uint64_t clocks[POINTS] = {gaussian_clock(design.sensitivity, rates[0]), 0, 0};
  for (int i = 1; i < POINTS; i++)
    clocks[i] = gaussian_noise.outward(design.sensitivity, rates[i], clocks[i - 1]);
  struct moments moments = {{0}, {{0}}};
  static int64_t totals[DIMENSION], points[POINTS][DIMENSION];
  int failed = 0;
  for (int run = 0; run < VECTORS; run++) {
    some_totals(totals);
    failed |= !release_draw(&gaussian_noise, totals, DIMENSION, clocks[0], points[0]);
    for (int i = 1; i < POINTS; i++)
      failed |= !release_diffuse(&gaussian_noise, points[i - 1], DIMENSION, clocks[i - 1],
                                 clocks[i], points[i]);
    add_moments(&moments, points, totals);
  }
  CHECK(!failed, "no entropy");
  check_moments(&moments, clocks);
}

static void draw_then_refine(void) {
  const double rates[POINTS] = {1, 0.3, 0.1};
  struct design design;
  scalar_design(&design, 1, 0, 0,
                rates[2]); /* the release begins at the outer tier, which fixes the lattice */
  uint64_t clocks[POINTS] = {0, 0, gaussian_clock(design.sensitivity, rates[2])}, fresh[POINTS];
  for (int i = POINTS - 2; i >= 0; i--)
    clocks[i] = path_inward(design.sensitivity, rates[i], clocks[i + 1], &fresh[i]);
  struct moments moments = {{0}, {{0}}};
  static int64_t totals[DIMENSION], points[POINTS][DIMENSION];
  int failed = 0;
  for (int run = 0; run < VECTORS; run++) {
    some_totals(totals);
    failed |= !release_draw(&gaussian_noise, totals, DIMENSION, clocks[2], points[2]);
    for (int i = POINTS - 2; i >= 0; i--)
      failed |= !release_refine(points[i + 1], totals, DIMENSION, clocks[i], clocks[i + 1],
                                fresh[i], points[i]);
    add_moments(&moments, points, totals);
  }
  CHECK(!failed, "no entropy");
  check_moments(&moments, clocks);
}

/* A refinement without a draw returns the outer point itself, for any totals. */
static void refine_without_a_draw(void) {
  int64_t from[3] = {1, -5, INT64_MAX / 4}, totals[3] = {100, 200, 300}, to[3] = {0, 0, 0};
  CHECK(release_refine(from, totals, 3, 1 << 21, 1 << 21, 0, to), "no entropy");
  for (int i = 0; i < 3; i++) CHECK(to[i] == from[i], "coordinate %d", i);
}

/* With the largest totals and the largest noise, no intermediate result overflows. */
static void the_largest_numbers(void) {
  int64_t totals[DIMENSION], points[2][DIMENSION];
  uint64_t variance = LATTICE_VARIANCE_END - 1;
  double sigma = sqrt((double)variance);
  for (int c = 0; c < DIMENSION; c++) totals[c] = c % 2 ? LATTICE_TOTAL : -LATTICE_TOTAL;
  CHECK(release_draw(&gaussian_noise, totals, DIMENSION, variance, points[0]), "no entropy");
  CHECK(release_diffuse(&gaussian_noise, points[0], DIMENSION, 0, variance, points[1]),
        "no entropy");
  for (int c = 0; c < DIMENSION; c++) {
    CHECK(fabs((double)(points[0][c] - totals[c])) < 20 * sigma, "coordinate %d", c);
    CHECK(fabs((double)(points[1][c] - points[0][c])) < 20 * sigma, "coordinate %d", c);
  }
}

/* ---- slack ----------------------------------------------------------------------------------- */

static void slack_is_negligible_and_upward(void) {
  CHECK(gaussian_noise.draw_slack((uint64_t)1 << 40, 1) > 0 &&
            gaussian_noise.draw_slack((uint64_t)1 << 40, 1) < 3e-27,
        "a draw");
  CHECK_CLOSE(gaussian_noise.draw_slack((uint64_t)1 << 40, 7),
              7 * gaussian_noise.draw_slack((uint64_t)1 << 40, 1), 1e-11);
  CHECK(gaussian_noise.step_slack((uint64_t)1 << 40, ((uint64_t)1 << 40) + LATTICE_MIN_STEP, 1) <
            1e-136,
        "a step");
  double least = gaussian_noise.step_slack(16, 32, 1);
  CHECK(least >= 2.1 * exp(-2 * M_PI * M_PI * 8) * (1 - 1e-12), "v = 8: %g", least);
  CHECK(gaussian_noise.step_slack(100, 100, 3) == 0, "no step");
}

int main(void) {
  RUN(designs_over_the_whole_domain);
  RUN(noise_is_not_wasted);
  RUN(outward_steps);
  RUN(outward_to_the_end);
  RUN(inward_steps);
  RUN(draw_then_diffuse);
  RUN(draw_then_refine);
  RUN(refine_without_a_draw);
  RUN(the_largest_numbers);
  RUN(slack_is_negligible_and_upward);
  FINISH();
}
