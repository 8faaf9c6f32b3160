/* test_estimate.c: compares mechanism.h with three references: closed forms in long double, the
** exact answers for tables, and simulated noise. For the exact answers, the test turns a table into
** a point without noise.
**
** A simulation has 20000 points. The standard error of a standard deviation is 0.5%, and the tests
** allow 3%. */
#include "families.h"
#include "check.h"
#include "random.h"

#include <stdint.h>

#include "../../ext/mechanism/quantiles.c" /* for tree_rank_stddev() */

/* Checks that a published number is rounded up, by less than 1e-12 of its size. */
static void check_up(double got, long double want, const char *what) {
  CHECK((long double)got >= want && (long double)got <= want * (1 + 1e-12L),
        "%s: got %.17g, want %.19Lg", what, got, want);
}

static const uint64_t clocks[] = {(uint64_t)1 << 20, ((uint64_t)1 << 40) + 12345, 2199023255553u,
                                  ((uint64_t)1 << 62) - 1};
static const int granularities[] = {-520, -41, -20, 0, 13, 470};

static struct view plain_view(uint64_t clock, int granularity) {
  return (struct view){.noise = &gaussian_noise, .granularity = granularity, .clock = clock};
}

static struct view ou_view(uint64_t clock, int granularity, double radius, double theta, double rho,
                           int dimension) {
  return (struct view){.noise = &gaussian_noise,
                       .granularity = granularity,
                       .clock = clock,
                       .is_ou = 1,
                       .radius = radius,
                       .theta = theta,
                       .rho = rho,
                       .dimension = dimension};
}

/* Returns the estimate that a release of one sum publishes for a point. */
static struct estimate shown(const struct view *view, int64_t point) {
  struct contribution question = {.family = &family_sum, .clip = 1};
  struct layout shape;
  struct reading reading = {
      .question = &question, .shape = &shape, .view = *view, .cells = 1, .confidence = 0.95};
  struct estimate estimate = {0, 0, NAN, NAN, NAN, NAN};
  layout_make(&shape, &question, 1, 0);
  CHECK(estimate_room(&reading) == 1 && estimate_point(&reading, &point, &estimate) == 1,
        "one number");
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
          double radius = r ? NAN : 5; /* if theta is given, the radius has no effect */
          struct view view = ou_view(clocks[i], granularities[g], radius, thetas[t], rhos[r], 3);
          double got = estimate_shrink(&view, estimate_variance(&view));
          CHECK_CLOSE(got, (double)want, 1e-12);
        }
      }
    }
  }
}

/* A Gaussian value is the lattice point itself. The value is exact to the last bit if the point
** fits a double. */
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
      double radius = (double)sqrtl(tau * 3 / 7); /* the shrink is 3/10 */
      struct view view = ou_view(clocks[0], granularities[g], radius, NAN, NAN, 1);
      view.centre = 17.25;
      long double square = (long double)radius * radius, shrink = square / (square + tau);
      long double x = ldexpl((long double)points[p], granularities[g]);
      long double want = 17.25L + shrink * (x - 17.25L), size = 17.25L + fabsl(x);
      CHECK(fabsl((long double)shown(&view, points[p]).value - want) <= 1e-15L * size,
            "point %lld: %.17g", (long long)points[p], shown(&view, points[p]).value);
    }
  }
  struct view all_centre = ou_view(clocks[0], 470, 1e-140, NAN, NAN, 1); /* the shrink is 0 */
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

/* Returns P(|Z| <= half_width) for normal noise Z, in long double. */
static long double coverage(double half_width, double stddev) {
  return erfl((long double)half_width / ((long double)stddev * sqrtl(2)));
}

static void half_widths(void) {
  check_up(gaussian_noise.half_width(1, 0.95), 1.959963984540054235L, "95%");
  check_up(gaussian_noise.half_width(3, 0.5), 3 * 0.674489750196081743L, "50%");
  const double confidences[] = {1e-9, 0.01, 0.3, 0.5, 0.68, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9};
  for (int i = 0; i < 10; i++) {
    double width = gaussian_noise.half_width(2.5, confidences[i]);
    long double outside = 1 - (long double)confidences[i];
    long double got = erfcl((long double)width / (2.5L * sqrtl(2)));
    CHECK(fabsl(got - outside) <= 1e-11L * outside * (1 + (long double)(width * width)),
          "%g: outside %Lg", confidences[i], got);
    CHECK(coverage(width, 2.5) >= (long double)confidences[i] - 0x1p-53L, "%g: covers %Lg",
          confidences[i], coverage(width, 2.5));
  }
  CHECK(isfinite(gaussian_noise.half_width(1, nextafter(1, 0))), "nearly certain");
  CHECK(gaussian_noise.half_width(0, 0.95) == 0, "no noise");
}

/* ---- points made from tables ----------------------------------------------------------------- */

enum { MOST = 2100 };

static int is_l1; /* 1: sum norm and Laplace noise; 0: Euclidean norm and Gaussian */

static const struct family *of(enum number number) {
  return family_in(number, is_l1);
}

/* A release with its lattice, a point of this release, and the estimates that are computed from the
** point. */
struct read {
  struct contribution question;
  struct layout shape;
  struct design design;
  struct reading reading;
  int coordinates, count;
  int64_t point[MOST];
  struct estimate estimates[MOST];
};

/* Prepares a release of `cells` cells at a rate. All coordinates of its point are 0. With private
** keys, `cells` is the number of keys in the point. */
static void read_start(struct read *read, const struct contribution *question, double rate,
                       int cells) {
  read->question = *question;
  layout_make(&read->shape, question, 1, 0);
  const struct noise_law *noise = read->shape.is_l1 ? &laplace_noise : &gaussian_noise;
  design_make(&read->design, &read->shape, rate, noise);
  uint64_t clock = noise->clock(read->design.sensitivity, rate);
  read->coordinates = cells * read->shape.width;
  read->reading = (struct reading){
      .question = &read->question, .shape = &read->shape, .cells = cells, .confidence = 0.95};
  read->reading.view = plain_view(clock, read->design.granularity);
  read->reading.view.shift = read->design.shift;
  read->reading.view.noise = noise;
  for (int i = 0; i < read->coordinates; i++) read->point[i] = 0;
}

static double step_of(const struct read *read) {
  return ldexp(1, read->design.granularity);
}

/* Sets a coordinate of the point to a value, rounded to the nearest lattice step. */
static void set(struct read *read, int coordinate, double value) {
  read->point[coordinate] = llrint(value / step_of(read));
}

static void read_point(struct read *read) {
  int room = estimate_room(&read->reading);
  read->count = estimate_point(&read->reading, read->point, read->estimates);
  CHECK(read->count >= 0 && read->count <= room, "%d numbers, room for %d", read->count, room);
}

/* Returns noise of standard deviation 1. */
static double noise_of(const struct read *read) {
  if (!read->shape.is_l1) return normal();
  double size = -log(1 - uniform()) / M_SQRT2;
  return random_bits() & 1 ? size : -size;
}

/* Sets the point to `truth` with new noise on every coordinate, and computes the estimates. */
static void read_with_noise(struct read *read, const int64_t *truth) {
  double sigma = sqrt((double)read->reading.view.clock);
  for (int i = 0; i < read->coordinates; i++)
    read->point[i] = truth[i] + llrint(sigma * noise_of(read));
  read_point(read);
}

/* Compares the published standard deviation with that of 20000 points, and checks how often the
** interval contains the truth. */
static void check_noise(struct read *read, int number, double truth, const char *what) {
  enum { RUNS = 20000 };
  static int64_t kept[MOST];
  read_point(read);
  struct estimate claimed = read->estimates[number];
  double sum = 0, squares = 0;
  int held = 0;
  for (int i = 0; i < read->coordinates; i++) kept[i] = read->point[i];
  for (int run = 0; run < RUNS; run++) {
    read_with_noise(read, kept);
    const struct estimate *estimate = &read->estimates[number];
    double error = estimate->value - truth;
    sum += error;
    squares += error * error;
    held += estimate->low <= truth && truth <= estimate->high;
    CHECK(estimate->low <= estimate->value && estimate->value <= estimate->high, "%s: interval",
          what);
  }
  double stddev = sqrt(squares / RUNS - sum / RUNS * (sum / RUNS));
  CHECK(fabs(stddev / claimed.stddev - 1) <= 0.03, "%s: %g, published %g", what, stddev,
        claimed.stddev);
  CHECK(fabs(sum / RUNS) <= 0.05 * stddev, "%s: biased by %g of %g", what, sum / RUNS, stddev);
  /* For sums of several Laplace noises, estimate.c uses the wider of two distributions, so the
  ** intervals may contain the truth a little more often. */
  double part = (double)held / RUNS;
  CHECK(part >= 0.94 && part <= (read->shape.is_l1 ? 0.97 : 0.96),
        "%s: the interval holds in %d of %d", what, held, (int)RUNS);
  for (int i = 0; i < read->coordinates; i++) read->point[i] = kept[i];
}

/* ---- averages -------------------------------------------------------------------------------- */

struct table {
  double mean, variance;
};

/* Sets the coordinates of a cell of n rows. `a` is the sum of u, and `b` is the sum of 2 u^2 -
** 1. */
static void put_sums(struct read *read, int cell, double n, double a, double b) {
  int first = cell * read->shape.components, is_spread = read->shape.components == 3;
  double squares = (n + b) / 2; /* the sum of u^2 */
  if (!is_l1) {
    set(read, first, n * read->shape.count_factor);
    set(read, first + 1, a);
    if (is_spread) set(read, first + 2, b);
  } else if (is_spread) { /* the sums of (1 - w)^2, 2 w (1 - w) and w^2, where w = (1 + u)/2 */
    set(read, first, (n - 2 * a + squares) / 4);
    set(read, first + 1, (n - squares) / 2);
    set(read, first + 2, (n + 2 * a + squares) / 4);
  } else {
    set(read, first, (n + a) / 2);
    set(read, first + 1, (n - a) / 2);
  }
}

/* Sets one cell to the count, the sum of u and the sum of 2 u^2 - 1 of n rows that are spread over
** [from, to]. Returns the mean and the variance of the rows. */
static struct table put_rows(struct read *read, int cell, int n, double from, double to) {
  const struct contribution *question = &read->question;
  double low = question->low, high = question->high, sum = 0, squares = 0, a = 0, b = 0;
  for (int i = 0; i < n; i++) {
    double x = from + (to - from) * uniform(), u = (2 * x - low - high) / (high - low);
    sum += x;
    squares += (x - from) * (x - from);
    a += u;
    b += 2 * u * u - 1;
  }
  put_sums(read, cell, n, a, b);
  double mean = sum / n;
  return (struct table){mean, squares / n - (mean - from) * (mean - from)};
}

static void averages(void) {
  static struct read read;
  static const double ranges[][2] = {{0, 100}, {-1, 1}, {-1e9, 1e-3}, {1e6, 1e6 + 1}};
  for (int i = 0; i < 4; i++) {
    struct contribution question = {
        .family = of(MEAN), .clip = 3, .low = ranges[i][0], .high = ranges[i][1]};
    double half = (question.high - question.low) / 2;
    read_start(&read, &question, 0.5, 1);
    struct table table = put_rows(&read, 0, 2000, question.low + half / 2, question.high);
    read_point(&read);
    CHECK(read.count == 1 &&
              fabs(read.estimates[0].value - table.mean) <= half * step_of(&read) / 500,
          "range %d: %.17g, not %.17g", i, read.estimates[0].value, table.mean);
    if (i < 2) check_noise(&read, 0, table.mean, "average");
  }
}

/* There is one average for each cell. The noise of an average depends on the count of its cell. */
static void averages_of_groups(void) {
  static struct read read;
  struct contribution question = {
      .family = of(KEY_MEAN), .clip = 1, .low = 10, .high = 20, .keys = 3};
  struct table tables[3];
  read_start(&read, &question, 0.5, 3);
  for (int i = 0; i < 3; i++) tables[i] = put_rows(&read, i, 200 << (2 * i), 12, 14 + 2 * i);
  read_point(&read);
  for (int i = 0; i < 3; i++) {
    const struct estimate *estimate = &read.estimates[i];
    CHECK(estimate->cell == i && estimate->component == 0, "group %d", i);
    CHECK(fabs(estimate->value - tables[i].mean) <= 1e-6, "group %d: %.17g", i, estimate->value);
    check_noise(&read, i, tables[i].mean, "average of a group");
    read_point(&read);
  }
  CHECK(read.estimates[0].stddev > 3 * read.estimates[1].stddev, "fewer rows, more noise");
}

static void averages_of_vectors(void) {
  static struct read read;
  struct contribution question = {.family = of(VECTOR_MEAN), .clip = 8, .size = 4};
  const double means[4] = {0, 3, -7.5, 0.001};
  read_start(&read, &question, 0.5, 1);
  set(&read, 0, 1500 * read.shape.count_factor);
  for (int j = 0; j < 4; j++) set(&read, 1 + j, 1500 * means[j]);
  read_point(&read);
  CHECK(read.count == 4, "%d numbers", read.count);
  for (int j = 0; j < 4; j++) {
    const struct estimate *estimate = &read.estimates[j];
    CHECK(estimate->cell == 0 && estimate->component == j, "component %d", j);
    CHECK(fabs(estimate->value - means[j]) <= 1e-6, "component %d: %.17g", j, estimate->value);
  }
  check_noise(&read, 0, means[0], "average of vectors");
  check_noise(&read, 2, means[2], "average of vectors");
}

/* A noisy count below 1 is replaced by 1. Published averages stay in their range. */
static void averages_stay_in_range(void) {
  static struct read read;
  struct contribution question = {.family = of(MEAN), .clip = 1, .low = -10, .high = 30};
  const double counts[] = {-100, 0, 0.25, 1, 100}, sums[] = {-1000, -0.5, 0, 0.5, 1000};
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 5; j++) {
      read_start(&read, &question, 0.5, 1);
      put_sums(&read, 0, counts[i], sums[j], 0);
      read_point(&read);
      double mean = fmin(fmax(sums[j] / fmax(counts[i], 1), -1), 1);
      CHECK(fabs(read.estimates[0].value - (10 + 20 * mean)) <= 1e-3, "%g of %g: %g", sums[j],
            counts[i], read.estimates[0].value);
      CHECK(read.estimates[0].low >= -10 && read.estimates[0].low <= read.estimates[0].value &&
                read.estimates[0].value <= read.estimates[0].high && read.estimates[0].high <= 30,
            "%g of %g: out of range", sums[j], counts[i]);
      CHECK(isfinite(read.estimates[0].stddev) && read.estimates[0].stddev > 0, "stddev");
    }
  }
  struct contribution vectors = {.family = of(VECTOR_MEAN), .clip = 2, .size = 2};
  read_start(&read, &vectors, 0.5, 1);
  set(&read, 1, 50);
  set(&read, 2, -50);
  read_point(&read);
  CHECK(read.estimates[0].value == 2 && read.estimates[1].value == -2, "components of vectors");
  CHECK(read.estimates[0].high == 2 && read.estimates[1].low == -2, "ends of vectors");
}

/* With a radius, the average moves to the nearest value within the radius of the centre, and the
** published noise does not change. With theta and rho, the distance of the average from the centre
** shrinks by the same factor as the noise of the average. The interval is always that of the
** average before it moves, and grows where the moved average is outside. */
static void averages_move_towards_the_centre(void) {
  static struct read read;
  struct contribution question = {.family = &family_mean, .clip = 1, .low = 0, .high = 10};
  read_start(&read, &question, 0.01, 1);
  struct table table = put_rows(&read, 0, 300, 2, 9);
  read_point(&read);
  double noise = read.estimates[0].stddev, centre = 4, away = table.mean - centre;
  double low = read.estimates[0].low, high = read.estimates[0].high;
  read.reading.view.is_ou = 1;
  read.reading.view.centre = centre;
  read.reading.view.theta = read.reading.view.rho = NAN;
  read.reading.view.dimension = 1;
  for (int i = 0; i < 2; i++) {
    read.reading.view.radius = (i ? 2 : 0.5) * fabs(away);
    read_point(&read);
    CHECK(read.reading.shrink == 1, "public parameters alone do not know it");
    CHECK_CLOSE(read.estimates[0].value, i ? table.mean : centre + away / 2, 1e-6);
    CHECK_CLOSE(read.estimates[0].stddev, noise, 1e-11);
    CHECK(read.estimates[0].low == fmin(low, read.estimates[0].value), "low end");
    CHECK(read.estimates[0].high == fmax(high, read.estimates[0].value), "high end");
  }
  read.reading.view.radius = NAN;
  read.reading.view.theta = 3;
  read.reading.view.rho = noise; /* 1 + theta tau/rho^2 = 4 */
  read_point(&read);
  CHECK_CLOSE(read.estimates[0].value, centre + away / 2, 1e-6);
  CHECK_CLOSE(read.estimates[0].stddev, noise / 2, 1e-11);
  CHECK(read.estimates[0].low == fmin(low, read.estimates[0].value), "low end");
  CHECK(read.estimates[0].high == fmax(high, read.estimates[0].value), "high end");
}

/* ---- spreads --------------------------------------------------------------------------------- */

static void variances(void) {
  static struct read read;
  for (int root = 0; root < 2; root++) {
    for (int i = 0; i < 3; i++) {
      struct contribution question = {.family = of(SPREAD), .clip = 1, .low = -20, .high = 80};
      read_start(&read, &question, 0.5, 1);
      read.reading.root = root;
      struct table table = put_rows(&read, 0, 3000, i == 1 ? 40 : -20, i == 2 ? 20 : 80);
      double truth = root ? sqrt(table.variance) : table.variance;
      read_point(&read);
      CHECK(read.count == 1, "%d numbers", read.count);
      CHECK_CLOSE(read.estimates[0].value, truth, 1e-6);
      check_noise(&read, 0, truth, root ? "standard deviation" : "variance");
    }
  }
}

static void variances_stay_in_range(void) {
  static struct read read;
  struct contribution question = {.family = of(SPREAD), .clip = 1, .low = 0, .high = 4};
  const double sums[] = {-50, -5, -1, 0, 1, 5, 50};
  for (int root = 0; root < 2; root++) {
    for (int i = 0; i < 343; i++) {
      read_start(&read, &question, 0.5, 1);
      read.reading.root = root;
      for (int j = 0; j < 3; j++) set(&read, j, sums[j == 0 ? i % 7 : j == 1 ? i / 7 % 7 : i / 49]);
      read_point(&read);
      const struct estimate *estimate = &read.estimates[0];
      CHECK(0 <= estimate->low && estimate->low <= estimate->value &&
                estimate->value <= estimate->high && estimate->high <= (root ? 2 : 4),
            "case %d: %g in [%g, %g]", i, estimate->value, estimate->low, estimate->high);
      CHECK(isfinite(estimate->stddev) && estimate->stddev > 0, "case %d: %g", i, estimate->stddev);
    }
  }
}

/* The intervals of spreads hold at any size, even if the noise is as large as the number of rows.
** The rows are constant, at the ends of the range, or spread over it. */
static void variances_of_few_rows(void) {
  enum { RUNS = 3000 };
  static struct read read;
  static const int rows[] = {2, 3, 5, 10, 20, 40, 80, 160};
  static int64_t truth[3];
  for (int run = 0; run < 8 * 5; run++) {
    int n = rows[run % 8], shape = run / 8, held = 0;
    struct contribution question = {.family = of(SPREAD), .clip = 1, .low = 0, .high = 2};
    read_start(&read, &question, 0.05, 1);
    double a = 0, b = 0;
    for (int i = 0; i < n; i++) {
      double even = (2 * i + 1.0) / n - 1;
      double u = shape == 0   ? 0
                 : shape == 1 ? 1
                 : shape == 2 ? (i % 2 ? 1 : -1)
                 : shape == 3 ? even
                 : i          ? 0.8
                              : -1;
      a += u;
      b += 2 * u * u - 1;
    }
    put_sums(&read, 0, n, a, b);
    double variance = (b / n + 1) / 2 - a / n * a / n;
    for (int i = 0; i < 3; i++) truth[i] = read.point[i];
    for (int i = 0; i < RUNS; i++) {
      read_with_noise(&read, truth);
      const struct estimate *estimate = &read.estimates[0];
      held += estimate->low <= variance + 1e-6 && variance - 1e-6 <= estimate->high;
    }
    /* 5 standard errors below 95% */
    CHECK(held >= 0.93 * RUNS, "%d rows of shape %d: %g", n, shape, (double)held / RUNS);
  }
}

/* ---- quantiles ------------------------------------------------------------------------------- */

/* Sets the counts of all nodes of the tree from the counts of the leaves. */
static void put_leaves(struct read *read, const int *leaves) {
  struct tree tree = read->shape.tree;
  int first = 0;
  for (int level = 1; level <= tree.levels; level++) {
    int bits = level * tree.bits / tree.levels, below = tree.bits - bits;
    for (int i = 0; i < 1 << bits; i++) {
      double sum = 0;
      for (int j = 0; j < 1 << below; j++) sum += leaves[(i << below) + j];
      set(read, first + i, sum);
    }
    first += 1 << bits;
  }
}

/* Returns the value of x at which the running total of the counts reaches the rank of q. Ranks run
** from 1/2 to n - 1/2. */
static double quantile_of(const struct contribution *question, const int *leaves, double q) {
  double all = 0, sum = 0, width = (question->high - question->low) / question->size;
  for (int i = 0; i < question->size; i++) all += leaves[i];
  double rank = 0.5 + q * (all - 1);
  for (int i = 0; i < question->size; i++) {
    if (leaves[i] && sum + leaves[i] >= rank)
      return question->low + width * (i + (rank - sum) / leaves[i]);
    sum += leaves[i];
  }
  return question->high;
}

static void quantiles(void) {
  static struct read read;
  static const double wanted[] = {0, 0.01, 0.25, 0.5, 0.625, 0.9, 1};
  for (int kind = 0; kind < 4; kind++) {
    struct contribution question = {
        .family = of(TREE), .clip = 1, .low = -50, .high = 14, .size = 64};
    int leaves[64];
    for (int i = 0; i < 64; i++) {
      leaves[i] = kind == 0 ? 400 : kind == 1 ? (int)(1000 * uniform()) : kind == 2 ? i * i : 0;
      if (kind == 3 && i % 20 == 7) leaves[i] = 5000;
    }
    read_start(&read, &question, 0.5, 1);
    read.reading.quantiles = wanted;
    read.reading.quantile_count = 7;
    put_leaves(&read, leaves);
    read_point(&read);
    CHECK(read.count == 7, "%d numbers", read.count);
    for (int i = 0; i < 7; i++) {
      double want = quantile_of(&question, leaves, wanted[i]);
      /* If rounding to the lattice moves a rank by one step, the new rank may lie on the other side
      ** of empty leaves. */
      double slack = kind == 3 ? 0.001 : 0.0001;
      CHECK(fabs(read.estimates[i].value - want) <= slack, "kind %d q %g: %.9g, not %.9g", kind,
            wanted[i], read.estimates[i].value, want);
      CHECK(read.estimates[i].component == i && read.estimates[i].cell == 0, "its place");
      CHECK(i == 0 || read.estimates[i].value >= read.estimates[i - 1].value, "decreases");
    }
  }
}

/* The noise of a median is many leaves wide. The interval also contains the rest of the two leaves
** at its ends, which makes it hold the median a little more often. */
static void noise_of_a_median(void) {
  static struct read read;
  enum { RUNS = 4000, LEAVES = 256 };
  static const double median[] = {0.5};
  static int64_t truth[MOST];
  struct contribution question = {
      .family = of(TREE), .clip = 1, .low = 0, .high = LEAVES, .size = LEAVES};
  int leaves[LEAVES], held = 0;
  for (int i = 0; i < LEAVES; i++) leaves[i] = 40;
  read_start(&read, &question, is_l1 ? 1e-4 : 2e-5, 1);
  read.reading.quantiles = median;
  read.reading.quantile_count = 1;
  put_leaves(&read, leaves);
  read_point(&read);
  double claimed = 0, sum = 0, squares = 0;
  for (int i = 0; i < read.coordinates; i++) truth[i] = read.point[i];
  for (int run = 0; run < RUNS; run++) {
    read_with_noise(&read, truth);
    const struct estimate *estimate = &read.estimates[0];
    claimed += estimate->stddev / RUNS;
    sum += estimate->value - LEAVES / 2;
    squares += (estimate->value - LEAVES / 2) * (estimate->value - LEAVES / 2);
    held += estimate->low <= LEAVES / 2 && LEAVES / 2 <= estimate->high;
    CHECK(estimate->low == rint(estimate->low) && estimate->high == rint(estimate->high), "leaves");
  }
  double stddev = sqrt(squares / RUNS - sum / RUNS * (sum / RUNS)), part = (double)held / RUNS;
  CHECK(claimed > 5 && fabs(stddev / claimed - 1) <= 0.15, "%g, published %g", stddev, claimed);
  CHECK(part >= 0.93, "the interval holds in %d of %d", held, (int)RUNS);
}

/* If all rows are in one leaf, nothing tells where, so the interval is the leaf. */
static void tied_rows(void) {
  static struct read read;
  static const double wanted[] = {0.1, 0.5, 0.9};
  struct contribution question = {.family = of(TREE), .clip = 1, .low = 0, .high = 16, .size = 16};
  int leaves[16] = {[5] = 100000};
  read_start(&read, &question, 0.5, 1);
  read.reading.quantiles = wanted;
  read.reading.quantile_count = 3;
  put_leaves(&read, leaves);
  read_point(&read);
  for (int i = 0; i < 3; i++) {
    const struct estimate *estimate = &read.estimates[i];
    CHECK(estimate->low == 5 && estimate->high == 6, "[%g, %g]", estimate->low, estimate->high);
    CHECK(estimate->stddev < 0.01, "the noise alone: %g", estimate->stddev);
  }
}

/* If there are no rows, the quantiles are those of evenly spread rows, and each interval is the
** whole range. */
static void quantiles_of_nothing(void) {
  static struct read read;
  static const double wanted[] = {0, 0.5, 1};
  struct contribution question = {.family = of(TREE), .clip = 1, .low = 0, .high = 8, .size = 16};
  read_start(&read, &question, 0.5, 1);
  read.reading.quantiles = wanted;
  read.reading.quantile_count = 3;
  for (int negative = 0; negative < 2; negative++) {
    for (int i = 0; i < read.coordinates; i++) read.point[i] = -negative * 1000000000LL;
    read_point(&read);
    for (int i = 0; i < 3; i++) {
      const struct estimate *estimate = &read.estimates[i];
      CHECK(estimate->value == 8 * wanted[i], "%g", estimate->value);
      CHECK(estimate->low == 0 && estimate->high == 8, "[%g, %g]", estimate->low, estimate->high);
    }
  }
}

/* ---- sums, bins, groups ---------------------------------------------------------------------- */

static void coordinates_as_they_are(void) {
  static struct read read;
  static const struct {
    struct contribution question;
    int cells, numbers, first, is_array;
  } cases[] = {
      {{.family = &family_vector, .clip = 2, .size = 5}, 1, 5, 0, 1},
      {{.family = &family_bins, .clip = 2, .low = 0, .high = 1, .size = 6}, 1, 6, 0, 1},
      {{.family = &family_key_count, .clip = 2, .keys = 4}, 4, 4, 0, 0},
      {{.family = &family_key_sum, .clip = 2, .keys = 4}, 4, 4, 0, 0},
      {{.family = &family_key_sum, .clip = 2, .keys = KEYS_PRIVATE, .max_groups = 3}, 4, 4, 1, 0},
  };
  for (int c = 0; c < 5; c++) {
    read_start(&read, &cases[c].question, 0.5, cases[c].cells);
    read.reading.selection_delta = 1e-6;
    int width = 1 + cases[c].first;
    for (int i = 0; i < cases[c].numbers; i++) {
      set(&read, i * width, 1e4); /* counts large enough to show every private key */
      set(&read, i * width + cases[c].first, 100 * i - 150);
    }
    read_point(&read);
    CHECK(read.count == cases[c].numbers, "case %d: %d numbers", c, read.count);
    double noise = estimate_stddev(&read.reading.view);
    for (int i = 0; i < read.count; i++) {
      const struct estimate *estimate = &read.estimates[i];
      int64_t steps = read.point[i * width + cases[c].first];
      CHECK(estimate->value == ldexp((double)steps, read.design.granularity), "case %d: %g", c,
            estimate->value);
      CHECK(estimate->cell == (cases[c].is_array ? 0 : i), "case %d", c);
      CHECK(estimate->component == (cases[c].is_array ? i : 0), "case %d", c);
      CHECK_CLOSE(estimate->stddev, noise, 1e-12);
    }
  }
}

/* estimate_total_stddev(), which uses public parameters only, agrees with the published standard
** deviation of points where the noise has the largest effect. */
static void noise_that_is_known_beforehand(void) {
  static struct read read;
  struct contribution sum = {.family = of(VECTOR), .clip = 5, .size = 3};
  read_start(&read, &sum, 0.1, 1);
  CHECK_CLOSE(estimate_total_stddev(&read.reading), estimate_stddev(&read.reading.view), 1e-12);
  struct contribution mean = {.family = of(MEAN), .clip = 1, .low = 0, .high = 60};
  read_start(&read, &mean, 0.1, 1);
  put_sums(&read, 0, 500, 500, 500); /* all rows are at the end of the range */
  read_point(&read);
  CHECK_CLOSE(estimate_total_stddev(&read.reading), 500 * read.estimates[0].stddev, 1e-9);
  struct contribution spread = {.family = of(SPREAD), .clip = 1, .low = 0, .high = 60};
  read_start(&read, &spread, 0.1, 1);
  put_sums(&read, 0, 500, 500, 500);
  read_point(&read);
  CHECK_CLOSE(estimate_total_stddev(&read.reading), 500 * read.estimates[0].stddev, 1e-9);
  struct contribution tree = {.family = of(TREE), .clip = 1, .low = 0, .high = 64, .size = 64};
  static const double list[] = {0.5, 0.9, 0.4};
  read_start(&read, &tree, 0.5, 1);
  read.reading.quantiles = list;
  double noise = ldexp(sqrt((double)read.reading.view.clock), read.design.granularity), most = 0;
  for (int i = 0; i < 3; i++) { /* the quantile whose rank is the least certain */
    double squares = 0;
    for (int place = 0; place < 6400; place++) {
      double stddev = tree_rank_stddev(read.shape.tree, list[i], (place + 0.5) / 100);
      squares += stddev * stddev / 6400;
    }
    double even = tree_rank_stddev(read.shape.tree, list[i], 64 * list[i]);
    most = fmax(most, fmax(sqrt(squares), even));
    read.reading.quantile_count = i + 1;
    CHECK_CLOSE(estimate_total_stddev(&read.reading), noise * most, 1e-4);
  }
  CHECK_CLOSE(estimate_half_width(&read.reading, 1e9), 0.5, 0.01); /* half a leaf */
}

/* ---- private keys ---------------------------------------------------------------------------- */

/* Returns P(X > t). X is normal with standard deviation 1, or, in the sum norm, the sum of `draws`
** (1 to 3) Laplace variables with standard deviation 1 each. */
static long double outside_of(int draws, long double t) {
  long double x = t * sqrtl(2), fall = expl(-x);
  if (!is_l1) return erfcl(t / sqrtl(2)) / 2;
  if (t < 0) return 1 - outside_of(draws, -t);
  if (draws == 1) return fall / 2;
  return draws == 2 ? fall * (2 + x) / 4 : fall * (8 + 5 * x + x * x) / 16;
}

/* Returns the t such that at least one of m independent variables X of outside_of() exceeds t with
** probability delta. */
static long double level_of(long double delta, int m, int draws) {
  long double low = -10, high = is_l1 ? 1000 : 40;
  for (int i = 0; i < 200; i++) {
    long double t = (low + high) / 2, outside = outside_of(draws, t);
    if (-expm1l(m * log1pl(-outside)) > delta) {
      low = t;
    } else {
      high = t;
    }
  }
  return high;
}

static void thresholds(void) {
  static struct read read;
  static const double deltas[] = {1e-300, 1e-15, 1e-9, 1e-7, 1e-3, 0.1, 0.5};
  static const int groups[] = {1, 2, 4, 100, 1024};
  static const enum number keyed[] = {KEY_COUNT, KEY_SUM, KEY_MEAN};
  for (int f = 0; f < 3; f++) {
    for (int r = 0; r < 3; r++) {
      double previous[7] = {0};
      for (int g = 0; g < 5; g++) {
        struct contribution question = {.family = of(keyed[f]), .clip = 3, .low = 0, .high = 1};
        question.keys = KEYS_PRIVATE;
        question.max_groups = groups[g];
        read_start(&read, &question, r == 0 ? 1e-6 : r == 1 ? 0.5 : 100, 1);
        /* The largest count that one unit adds to a key: three rows, or for sums one row that uses
        ** the whole clip. */
        long double most = (keyed[f] == KEY_SUM ? 1 : 3) * (long double)read.shape.count_steps;
        for (int d = 0; d < 7; d++) {
          read.reading.selection_delta = deltas[d];
          double threshold = estimate_threshold(&read.reading);
          long double noise = sqrtl((long double)read.reading.view.clock) *
                              level_of(deltas[d], groups[g], read.shape.counted);
          long double want = ldexpl(most, -read.design.shift) + noise;
          CHECK((long double)threshold >= want && (long double)threshold <= want * (1 + 1e-10L) + 8,
                "family %d delta %g groups %d: %.17g, not %.19Lg", f, deltas[d], groups[g],
                threshold, want);
          CHECK(threshold >= previous[d], "more groups, no lower threshold");
          previous[d] = threshold;
          CHECK(d == 0 || threshold < previous[d - 1], "larger delta, lower threshold");
        }
      }
    }
  }
}

/* A key is shown exactly if its count is at least the threshold. */
static void keys_below_the_threshold_are_not_shown(void) {
  static struct read read;
  static const enum number keyed[] = {KEY_COUNT, KEY_SUM, KEY_MEAN};
  for (int f = 0; f < 3; f++) {
    struct contribution question = {.family = of(keyed[f]), .clip = 1, .low = 0, .high = 1};
    question.keys = KEYS_PRIVATE;
    question.max_groups = 4;
    read_start(&read, &question, 0.5, 6);
    read.reading.selection_delta = 1e-7;
    int64_t threshold = (int64_t)estimate_threshold(&read.reading);
    const int64_t counts[6] = {0,          threshold - 1, threshold,
                               -threshold, threshold + 1, INT64_MAX / 4};
    for (int i = 0; i < 6; i++) {
      read.point[i * read.shape.components] = counts[i];
      if (read.shape.counted == 2) { /* the count is the sum of two coordinates */
        read.point[2 * i] -= 1000 + i;
        read.point[2 * i + 1] = 1000 + i;
      }
      if (keyed[f] == KEY_SUM) read.point[2 * i + 1] = 1000000000000; /* sums do not matter */
    }
    read_point(&read);
    CHECK(read.count == 3 && read.estimates[0].cell == 2 && read.estimates[1].cell == 4 &&
              read.estimates[2].cell == 5,
          "family %d: %d keys", f, read.count);
  }
}

/* One unit has four keys and adds the largest possible count to each. The test checks that at least
** one of these keys is shown with probability delta = 0.05. */
static void check_lone_keys(enum number family) {
  static struct read read;
  enum { RUNS = 40000 };
  struct contribution question = {
      .family = of(family), .clip = 1, .high = 1, .keys = KEYS_PRIVATE, .max_groups = 4};
  int64_t truth[12] = {0};
  int shown_runs = 0;
  read_start(&read, &question, 0.5, 4);
  read.reading.selection_delta = 0.05;
  for (int i = 0; i < 4; i++)
    truth[i * read.shape.components] = lattice_round(read.shape.count_steps, read.design.shift);
  for (int run = 0; run < RUNS; run++) {
    read_with_noise(&read, truth);
    shown_runs += read.count > 0;
  }
  double part = (double)shown_runs / RUNS;
  CHECK(fabs(part - 0.05) <= 6 * sqrt(0.05 * 0.95 / RUNS), "shown in %g of all runs", part);
}

static void a_key_of_one_unit_is_rarely_shown(void) {
  check_lone_keys(KEY_COUNT);
  check_lone_keys(KEY_MEAN);
}

/* The intervals of published keys hold 95% of the true numbers, however rarely a key is published.
** Each run adds noise until the key is published. */
static void intervals_of_published_keys(void) {
  enum { RUNS = 3000 };
  static struct read read;
  static const enum number keyed[] = {KEY_COUNT, KEY_SUM, KEY_MEAN, KEY_SPREAD};
  for (int run = 0; run < 4 * 5; run++) {
    int f = run % 4, held = 0;
    struct contribution question = {.family = of(keyed[f]),
                                    .clip = 1,
                                    .low = 0,
                                    .high = 2,
                                    .keys = KEYS_PRIVATE,
                                    .max_groups = 2};
    int64_t truth[4];
    read_start(&read, &question, 0.1, 1);
    read.reading.selection_delta = 1e-6;
    double noise =
        ldexp(sqrt((double)read.reading.view.clock * read.shape.counted), read.design.granularity) /
        read.shape.count_factor;
    double threshold =
        ldexp(estimate_threshold(&read.reading), read.design.granularity) / read.shape.count_factor;
    double n = threshold + (run / 4 - 2) * noise, value = 0.95 * n, wanted = 1.95;
    if (keyed[f] == KEY_COUNT) {
      set(&read, 0, wanted = n);
    } else if (keyed[f] == KEY_SUM) {
      set(&read, 0, n * read.shape.count_factor);
      set(&read, 1, wanted = value);
    } else { /* all rows have u = 0.95 */
      put_sums(&read, 0, n, value, (2 * 0.95 * 0.95 - 1) * n);
      if (keyed[f] == KEY_SPREAD) wanted = 0;
    }
    for (int i = 0; i < read.coordinates; i++) truth[i] = read.point[i];
    for (int i = 0; i < RUNS; i++) {
      do {
        read_with_noise(&read, truth);
      } while (read.count == 0);
      held += read.estimates[0].low <= wanted + 1e-6 && wanted - 1e-6 <= read.estimates[0].high;
    }
    /* 5 standard errors below 95% */
    CHECK(held >= 0.93 * RUNS, "family %d, %d sigma above the threshold: %g", f, run / 4 - 2,
          (double)held / RUNS);
  }
}

int main(void) {
  RUN(shrink_of_a_radius);
  RUN(shrink_of_a_process);
  RUN(values);
  RUN(standard_deviations);
  RUN(half_widths);
  for (is_l1 = 0; is_l1 < 2; is_l1++) {
    RUN(averages);
    RUN(averages_of_groups);
    RUN(averages_of_vectors);
    RUN(averages_stay_in_range);
    if (!is_l1) RUN(averages_move_towards_the_centre); /* OU noise is Gaussian */
    RUN(variances);
    RUN(variances_stay_in_range);
    RUN(variances_of_few_rows);
    RUN(quantiles);
    RUN(noise_of_a_median);
    RUN(tied_rows);
    RUN(quantiles_of_nothing);
    RUN(coordinates_as_they_are);
    RUN(noise_that_is_known_beforehand);
    RUN(thresholds);
    RUN(keys_below_the_threshold_are_not_shown);
    RUN(a_key_of_one_unit_is_rarely_shown);
    RUN(intervals_of_published_keys);
  }
  FINISH();
}
