/* test_bridges.c: compares points that are drawn between two points of a path (noise.h) with their
** conditional distributions.
**
** The test computes the distributions from their definition: the product of the probabilities of
** the two steps, divided by the sum of all products. The distribution of a Laplace step comes from
** its generating function, not from the formulas of discrete_laplace.c.
**
** False alarms. A chi-square test fails below a p-value of 1e-11, and each of its cells has an
** expected count of at least 100. A test of a moment or of a frequency fails beyond 7 standard
** deviations, which has probability 3e-12. All 523 comparisons together raise a false alarm with
** probability below 2e-9. With CONTROLS draws, the probability that a chi-square test misses one of
** the errors of a_wrong_gaussian_law_is_seen() is below 1e-10. The probability that the moments of
** all 24 orders together miss a variance error of 2% is below 1e-6. */
#include "check.h"
#include "chi_square.h"
#include "noise/noise.h"

#define ALARM 1e-11
#define LIMIT 7.0
#define REACH 1500
#define DRAWS 100000
#define CONTROLS 500000

static int64_t inner[CONTROLS], outer[CONTROLS], between[CONTROLS];
static long double law[2 * REACH + 1];
static long counts[2 * REACH + 1];

static void fill(int64_t *values, int64_t value, int count) {
  for (int i = 0; i < count; i++) values[i] = value;
}

static void normalise(void) {
  long double sum = 0;
  for (int i = 0; i <= 2 * REACH; i++) sum += law[i];
  for (int i = 0; i <= 2 * REACH; i++) law[i] /= sum;
}

/* Tests whether the differences between[i] - from, i < count, have the distribution `law`. Returns
** the p-value. */
static double p_of_draws(int64_t from, int count) {
  for (int i = 0; i <= 2 * REACH; i++) counts[i] = 0;
  for (int i = 0; i < count; i++) {
    int64_t d = between[i] - from;
    CHECK(d >= -REACH && d <= REACH, "out of reach: %lld", (long long)d);
    if (d >= -REACH && d <= REACH) counts[d + REACH]++;
  }
  return p_value(counts, law, 2 * REACH + 1, count);
}

/* ---- Gaussian -------------------------------------------------------------------------------- */

static void gaussian_law(long double a, long double b, long double m) {
  long double centre = m * a / (a + b);
  for (int i = 0; i <= 2 * REACH; i++) {
    long double d = i - REACH, e = m - d, c = centre, f = m - centre;
    law[i] = expl(-(d * d - c * c) / (2 * a) - (e * e - f * f) / (2 * b));
  }
  normalise();
}

static const struct {
  uint64_t a, b;
  int64_t m;
} gaussian_cases[] = {{1, 1, 0},     {1, 1, 1},     {1, 1, -3},    {1, 2, 1},
                      {2, 1, -1},    {3, 5, 4},     {5, 3, -4},    {16, 16, 0},
                      {16, 16, 7},   {16, 16, -1},  {16, 40, 9},   {40, 16, -9},
                      {1, 1000, 20}, {1000, 1, 20}, {100, 300, 3}, {17, 400, -5}};
enum { GAUSSIAN_CASES = sizeof gaussian_cases / sizeof *gaussian_cases };

static void gaussian_points_follow_their_law(void) {
  for (int i = 0; i < GAUSSIAN_CASES; i++) {
    struct gaussian_bridge bridge = {gaussian_cases[i].a, gaussian_cases[i].b};
    int64_t from = 1000 * i - 7, m = gaussian_cases[i].m;
    fill(inner, from, DRAWS);
    fill(outer, from + m, DRAWS);
    CHECK(gaussian_bridge_draw(&bridge, inner, outer, between, DRAWS) == 1, "no random bytes");
    gaussian_law(bridge.inward, bridge.outward, m);
    double p = p_of_draws(from, DRAWS);
    CHECK(p > ALARM, "a %d, b %d, m %d: p %g", (int)bridge.inward, (int)bridge.outward, (int)m, p);
  }
}

/* Control: the test must reject a variance that is off by 5%, and a centre that is off by a
** quarter. */
static void a_wrong_gaussian_law_is_seen(void) {
  struct gaussian_bridge bridge = {100, 300};
  fill(inner, 0, CONTROLS);
  fill(outer, 3, CONTROLS);
  CHECK(gaussian_bridge_draw(&bridge, inner, outer, between, CONTROLS) == 1, "no random bytes");
  gaussian_law(105, 315, 3);
  CHECK(p_of_draws(0, CONTROLS) < ALARM, "variance 5%% too large");
  gaussian_law(100 / 1.05L, 300 / 1.05L, 3);
  CHECK(p_of_draws(0, CONTROLS) < ALARM, "variance 5%% too small");
  gaussian_law(100, 300, 2);
  CHECK(p_of_draws(0, CONTROLS) < ALARM, "centre a quarter too low");
}

/* For short vectors, the sampler draws each coordinate from a batch. */
static void short_gaussian_vectors_follow_the_law(void) {
  enum { SINGLES = 30000 };
  struct gaussian_bridge bridge = {3, 5};
  int64_t from[2] = {-5, -5}, to[2] = {-1, -1};
  for (int i = 0; i < SINGLES; i += 2)
    CHECK(gaussian_bridge_draw(&bridge, from, to, between + i, 2) == 1, "no random bytes");
  gaussian_law(3, 5, 4);
  double p = p_of_draws(-5, SINGLES);
  CHECK(p > ALARM, "p %g", p);
}

/* The steps are as wide as possible, so the integers are as large as possible. The test checks the
** mean, the variance and the low-order bits. The sum of squares has a relative standard deviation
** of sqrt(2/count). */
static void wide_gaussian_points_have_their_moments(void) {
  enum { COUNT = 500000 };
  const uint64_t end = (uint64_t)1 << 62;
  const struct gaussian_bridge wide[] = {{(uint64_t)1 << 41, (uint64_t)1 << 41},
                                         {((uint64_t)1 << 61) - 1, (uint64_t)1 << 61},
                                         {16, end - 17},
                                         {end - 17, 16},
                                         {1234567891011, (uint64_t)1 << 50}};
  const int64_t far[] = {0, (int64_t)1 << 31, -((int64_t)1 << 62), (int64_t)1 << 62, -123456789};
  for (int i = 0; i < 5; i++) {
    long double a = (long double)wide[i].inward, b = (long double)wide[i].outward;
    int64_t from = i == 2 ? (int64_t)1 << 61 : -far[i] / 2;
    fill(inner, from, COUNT);
    fill(outer, from + far[i], COUNT);
    CHECK(gaussian_bridge_draw(&wide[i], inner, outer, between, COUNT) == 1, "no random bytes");
    __extension__ typedef __int128 wide_int;
    wide_int product = (wide_int)far[i] * (wide_int)wide[i].inward;
    wide_int sum = (wide_int)wide[i].inward + (wide_int)wide[i].outward;
    int64_t whole = (int64_t)(product / sum);
    long double rest = (long double)(product % sum) / (a + b), sigma = sqrtl(a * b / (a + b));
    long double first = 0, second = 0, bits[16] = {0};
    for (int k = 0; k < COUNT; k++) {
      long double z = ((long double)(between[k] - from - whole) - rest) / sigma;
      first += z;
      second += z * z;
      bits[between[k] & 15]++;
    }
    double mean = (double)first / sqrt(COUNT);
    double spread = ((double)second / COUNT - 1) / sqrt(2.0 / COUNT);
    CHECK(fabs(mean) < LIMIT, "case %d: mean %g", i, mean);
    CHECK(fabs(spread) < LIMIT, "case %d: variance %g", i, spread);
    for (int k = 0; k < 16 && sigma > 100; k++) {
      double share = ((double)bits[k] / COUNT * 16 - 1) / sqrt(15.0 / COUNT);
      CHECK(fabs(share) < LIMIT, "case %d: residue %d: %g", i, k, share);
    }
  }
}

/* ---- Laplace --------------------------------------------------------------------------------- */

static long double step_law[4 * REACH + 1], other_law[4 * REACH + 1];

/* Computes the distribution of a step from scale t to scale u. Its generating function is the
** quotient of the generating functions of the two discrete Laplace distributions. The step
** therefore has the distribution of scale u, convolved with the coefficients of
** (1 - pz)(1 - p/z)/(1 - p)^2, where p = exp(-1/t). */
static void laplace_step_law(long double t, long double u, long double *step) {
  long double p = expl(-1 / t), r = expl(-1 / u), scale = (1 - r) / (1 + r) / ((1 - p) * (1 - p));
  for (int i = 0; i <= 4 * REACH; i++) {
    long double k = fabsl((long double)(i - 2 * REACH));
    step[i] = scale * ((1 + p * p) * powl(r, k) - p * (powl(r, k + 1) + powl(r, fabsl(k - 1))));
  }
}

static void laplace_law(int t1, int t2, int t3, int m) {
  laplace_step_law(t1, t2, step_law);
  laplace_step_law(t2, t3, other_law);
  for (int i = 0; i <= 2 * REACH; i++) {
    int d = i - REACH;
    law[i] = step_law[d + 2 * REACH] * other_law[m - d + 2 * REACH];
  }
  normalise();
}

static const int laplace_cases[][4] = {
    {1, 2, 3, 0},   {1, 2, 3, 1},     {1, 2, 3, -2},   {1, 2, 30, 0},
    {1, 2, 30, 25}, {1, 20, 30, -25}, {9, 10, 11, 0},  {9, 10, 11, -1},
    {9, 10, 11, 8}, {10, 20, 50, 0},  {10, 20, 50, 3}, {10, 20, 50, -60},
    {2, 40, 41, 5}, {30, 31, 60, 0},  {1, 50, 60, 0},  {20, 21, 22, 90}};
enum { LAPLACE_CASES = sizeof laplace_cases / sizeof *laplace_cases };

static void laplace_points_follow_their_law(void) {
  for (int i = 0; i < LAPLACE_CASES; i++) {
    const int *t = laplace_cases[i];
    struct laplace_bridge bridge = {(uint64_t)t[0], (uint64_t)t[1], (uint64_t)t[2]};
    int64_t from = 7 - 1000 * i;
    fill(inner, from, DRAWS);
    fill(outer, from + t[3], DRAWS);
    CHECK(laplace_bridge_draw(&bridge, inner, outer, between, DRAWS) == 1, "no random bytes");
    laplace_law(t[0], t[1], t[2], t[3]);
    double p = p_of_draws(from, DRAWS);
    CHECK(p > ALARM, "%d %d %d, m %d: p %g", t[0], t[1], t[2], t[3], p);
  }
}

/* Control: the test must reject distributions with one slightly different scale or end point. */
static void a_wrong_laplace_law_is_seen(void) {
  struct laplace_bridge bridge = {10, 20, 50};
  fill(inner, 0, CONTROLS);
  fill(outer, 3, CONTROLS);
  CHECK(laplace_bridge_draw(&bridge, inner, outer, between, CONTROLS) == 1, "no random bytes");
  const int wrong[][4] = {{11, 20, 50, 3}, {10, 21, 50, 3}, {10, 20, 55, 3}, {10, 20, 50, 5}};
  for (int i = 0; i < 4; i++) {
    laplace_law(wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3]);
    CHECK(p_of_draws(0, CONTROLS) < ALARM, "case %d", i);
  }
}

static void short_laplace_vectors_follow_the_law(void) {
  enum { SINGLES = 20000 };
  struct laplace_bridge bridge = {9, 10, 11};
  int64_t from[2] = {4, 4}, to[2] = {12, 12};
  for (int i = 0; i < SINGLES; i += 2)
    CHECK(laplace_bridge_draw(&bridge, from, to, between + i, 2) == 1, "no random bytes");
  laplace_law(9, 10, 11, 8);
  double p = p_of_draws(4, SINGLES);
  CHECK(p > ALARM, "p %g", p);
}

/* For wide scales, the test draws a path outward from 0 and then draws the point in between. This
** point must have the same distribution as the middle point of a path that is drawn step by step.
** The test compares the frequencies of 40 cells and the mean size with the discrete Laplace
** distribution of the middle scale. The mean size has a relative standard deviation of
** 1/sqrt(count), so the test misses a scale that is wrong by 8.3% with probability 1e-6. The test
** also checks how often each step is 0. */
static void wide_laplace_points_have_their_margins(void) {
  enum { COUNT = 20000, CELLS = 20 };
  const struct laplace_bridge wide[] = {{1 << 20, 3 << 19, 1 << 21},
                                        {(1u << 31) - 3, (1u << 31) - 2, (1u << 31) - 1},
                                        {1 << 20, 1 << 25, (1u << 31) - 1}};
  for (int i = 0; i < 3; i++) {
    CHECK(discrete_laplace_draw(wide[i].inner, inner, COUNT), "no random bytes");
    CHECK(discrete_laplace_step(wide[i].inner, wide[i].outer, outer, COUNT), "no random bytes");
    for (int k = 0; k < COUNT; k++) outer[k] += inner[k];
    CHECK(laplace_bridge_draw(&wide[i], inner, outer, between, COUNT) == 1, "no random bytes");
    long seen[2 * CELLS] = {0};
    long double cells[2 * CELLS];
    for (int k = 0; k < 2 * CELLS; k++) cells[k] = 0.5L / CELLS;
    long stays[2] = {0, 0};
    long double sizes = 0;
    for (int k = 0; k < COUNT; k++) {
      long double x = (long double)between[k] / (long double)wide[i].middle;
      sizes += fabsl(x);
      int cell = (int)(-expm1l(-fabsl(x)) * CELLS);
      seen[(x < 0 ? CELLS : 0) + (cell < CELLS ? cell : CELLS - 1)]++;
      stays[0] += between[k] == inner[k];
      stays[1] += between[k] == outer[k];
    }
    double p = p_value(seen, cells, 2 * CELLS, COUNT);
    CHECK(p > ALARM, "case %d: p %g", i, p);
    double size = ((double)sizes / COUNT - 1) * sqrt(COUNT);
    CHECK(fabs(size) < LIMIT, "case %d: mean size %g", i, size);
    const uint64_t scales[3] = {wide[i].inner, wide[i].middle, wide[i].outer};
    for (int s = 0; s < 2; s++) { /* the frequency of steps that are 0 */
      laplace_step_law((long double)scales[s], (long double)scales[s + 1], step_law);
      double share = (double)step_law[2 * REACH];
      double z = ((double)stays[s] / COUNT - share) / sqrt(share * (1 - share) / COUNT + 1e-12);
      CHECK(fabs(z) < LIMIT, "case %d, step %d: %g", i, s, z);
    }
  }
}

/* ---- all orders of five tiers ---------------------------------------------------------------- */

/* Five points at the clocks below. The test draws the innermost point first, and the other points
** in each of the 24 orders. A point outside all others comes from a step, and a point between two
** others comes from a bridge. The covariance of the noise of two points must be the variance of the
** inner point. */
enum { TIERS = 5, PATHS = 40000, ORDERS = 24 };
static const uint64_t clocks[TIERS] = {1 << 20, 3 << 20, (3 << 20) + 16, 10 << 20, 40 << 20};
static int64_t points[TIERS][PATHS];
static long double products[TIERS][TIERS];

static void draw_point(int k, const int *drawn) {
  int below_it = k - 1, above_it = k + 1;
  while (!drawn[below_it]) below_it--;
  while (above_it < TIERS && !drawn[above_it]) above_it++;
  uint64_t a = clocks[k] - clocks[below_it];
  if (above_it == TIERS) {
    CHECK(discrete_gaussian_draw(a, points[k], PATHS), "no random bytes");
    for (int i = 0; i < PATHS; i++) points[k][i] += points[below_it][i];
  } else {
    struct gaussian_bridge bridge = {a, clocks[above_it] - clocks[k]};
    CHECK(gaussian_bridge_draw(&bridge, points[below_it], points[above_it], points[k], PATHS),
          "no random bytes");
  }
}

static void check_products(int count, const char *which) {
  for (int i = 0; i < TIERS; i++) {
    for (int j = i; j < TIERS; j++) {
      double inner_variance = (double)clocks[i], outer_variance = (double)clocks[j];
      double want = inner_variance;
      double error =
          sqrt((inner_variance * outer_variance + inner_variance * inner_variance) / count);
      double z = ((double)(products[i][j] / count) - want) / error;
      CHECK(fabs(z) < LIMIT, "%s: points %d and %d: %g", which, i, j, z);
    }
  }
}

static void every_order_has_the_joint_moments(void) {
  static long double pooled[TIERS][TIERS];
  for (int order = 0; order < ORDERS; order++) {
    int left[4] = {1, 2, 3, 4}, drawn[TIERS] = {1}, rest = order;
    char name[] = "order     ";
    CHECK(discrete_gaussian_draw(clocks[0], points[0], PATHS), "no random bytes");
    for (int size = 4; size > 0; size--) {
      int pick = rest % size, k = left[pick];
      rest /= size;
      left[pick] = left[size - 1];
      draw_point(k, drawn);
      drawn[k] = 1;
      name[6 + 4 - size] = (char)('0' + k);
    }
    for (int i = 0; i < TIERS; i++) {
      for (int j = i; j < TIERS; j++) {
        products[i][j] = 0;
        for (int k = 0; k < PATHS; k++)
          products[i][j] += (long double)points[i][k] * (long double)points[j][k];
        pooled[i][j] += products[i][j];
      }
    }
    check_products(PATHS, name);
  }
  for (int i = 0; i < TIERS; i++) {
    for (int j = i; j < TIERS; j++) products[i][j] = pooled[i][j];
  }
  check_products(PATHS * ORDERS, "all orders");
}

/* ---- the slack ------------------------------------------------------------------------------- */

/* A path that is drawn step by step reaches its outer point z in two steps of variances a and b. A
** release that later adds a point in between has drawn z in one step. The two distributions of z
** differ slightly. For this difference, the release charges the slack 4.1 exp(-2 pi^2 v) with v =
** ab/(a + b). The slack must be an upper bound on the logarithm of the ratio of the two
** distributions. */
static void the_slack_bounds_the_ratio_of_the_two_laws(void) {
  const int variances[] = {1, 2, 3, 4, 6, 8};
  for (int i = 0; i < 6; i++) {
    for (int j = 0; j < 6; j++) {
      long double a = variances[i], b = variances[j], v = a * b / (a + b), sums[3] = {0, 0, 0};
      long double bound = 4.1L * expl(-2 * (long double)M_PI * (long double)M_PI * v), worst = 0;
      for (int k = -400; k <= 400; k++) {
        sums[0] += expl(-k * (long double)k / (2 * a));
        sums[1] += expl(-k * (long double)k / (2 * b));
        sums[2] += expl(-k * (long double)k / (2 * (a + b)));
      }
      for (int m = -20; m <= 20; m++) {
        long double both = 0, centre = m * a / (a + b);
        for (int k = -400; k <= 400; k++) both += expl(-(k - centre) * (k - centre) / (2 * v));
        long double ratio = logl(both * sums[2] / (sums[0] * sums[1]));
        worst = fmaxl(worst, fabsl(ratio));
      }
      CHECK(worst <= bound + 1e-17L, "a %g, b %g: %Lg above %Lg", (double)a, (double)b, worst,
            bound);
      CHECK(bound < 1e-13L || worst > bound / 3, "a %g, b %g: %Lg far below %Lg", (double)a,
            (double)b, worst, bound);
    }
  }
}

/* ---- the domain ------------------------------------------------------------------------------ */

static void what_is_out_of_range_is_refused(void) {
  const uint64_t end = (uint64_t)1 << 62;
  const struct gaussian_bridge gaussian[] = {
      {0, 1}, {1, 0}, {end - 1, 1}, {end, end}, {UINT64_MAX, 2}};
  for (int i = 0; i < 5; i++) {
    between[0] = 1;
    CHECK(!gaussian_bridge_draw(&gaussian[i], inner, outer, between, 1), "case %d", i);
    CHECK(between[0] == 0, "case %d", i);
  }
  const struct laplace_bridge laplace[] = {
      {0, 1, 2}, {1, 1, 2}, {1, 2, 2}, {2, 1, 3}, {1, 2, DISCRETE_LAPLACE_MAX_SCALE}};
  for (int i = 0; i < 5; i++) {
    between[0] = 1;
    CHECK(!laplace_bridge_draw(&laplace[i], inner, outer, between, 1), "case %d", i);
    CHECK(between[0] == 0, "case %d", i);
  }
}

int main(void) {
  RUN(gaussian_points_follow_their_law);
  RUN(a_wrong_gaussian_law_is_seen);
  RUN(short_gaussian_vectors_follow_the_law);
  RUN(wide_gaussian_points_have_their_moments);
  RUN(laplace_points_follow_their_law);
  RUN(a_wrong_laplace_law_is_seen);
  RUN(short_laplace_vectors_follow_the_law);
  RUN(wide_laplace_points_have_their_margins);
  RUN(every_order_has_the_joint_moments);
  RUN(the_slack_bounds_the_ratio_of_the_two_laws);
  RUN(what_is_out_of_range_is_refused);
  FINISH();
}
