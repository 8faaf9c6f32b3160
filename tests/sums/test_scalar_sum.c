/* test_scalar_sum.c: compares sums.h with a reference without hashing. The reference compares
** the unit of every row with the unit of every other row, and uses long double and 128-bit
** arithmetic. test_identity.c tests which values are one unit. */
#include "check.h"

#include <float.h>

#include "scalar.h"
#include "tables.h"

/* ---- the reference --------------------------------------------------------------------------- */

static struct row of_unit(int unit, double value) {
  return (struct row){.who = WHO_INTEGER, .unit = unit, .x = value};
}

static int128 clamped(int128 x, const struct bounds *bounds) {
  if (x < (int128)bounds->low) return (int128)bounds->low;
  return x > (int128)bounds->high ? (int128)bounds->high : x;
}

static int128 reference(const struct release *release, const struct row *rows, int count) {
  struct bounds bounds = design_bounds(&release->shape);
  int128 total = 0;
  char *done = calloc(1, (size_t)count + 1);
  for (int i = 0; i < count; i++) {
    if (done[i]) continue;
    int128 unit = steps_of(rows[i].x, bounds.scale);
    for (int j = i + 1; j < count && release->by_unit; j++) {
      if (done[j] || !same_unit(&rows[i], &rows[j])) continue;
      done[j] = 1;
      unit += steps_of(rows[j].x, bounds.scale);
    }
    total += clamped(unit, &bounds);
  }
  free(done);
  return total;
}

static struct release summing(double clip, int nonnegative, int by_unit) {
  struct contribution question = {.family = &family_sum, .nonnegative = nonnegative, .clip = clip};
  return release_of(&question, by_unit, 0);
}

/* Returns the extension's total of a table. */
static int128 total_for(const struct release *release, const struct row *rows, int count) {
  int128 *total = total_of(release, rows, count), value = total ? *total : -1;
  CHECK(total, "failed on %d rows", count);
  free(total);
  return value;
}

/* Returns whether the total is right, by unit and by row. */
static int same(double clip, int nonnegative, const struct row *rows, int count) {
  int right = 1;
  for (int by_unit = 0; by_unit < 2; by_unit++) {
    struct release release = summing(clip, nonnegative, by_unit);
    right &= total_for(&release, rows, count) == reference(&release, rows, count);
  }
  return right;
}

/* The clips to test: some have few significant bits, some have 53 bits, and two are the smallest
** and the largest clip. */
static const double clips[] = {1, 240, 0.1, M_PI, 1e-150, 1e150, 0x1.fffffffffffffp10};
#define CLIPS ((int)(sizeof clips / sizeof *clips))

/* ---- tests ----------------------------------------------------------------------------------- */

static void bounds_are_exact(void) {
  for (int i = 0; i < CLIPS; i++) {
    struct bounds both = scalar_bounds(clips[i], 0), positive = scalar_bounds(clips[i], 1);
    CHECK(both.high / both.scale == clips[i] && both.low == -both.high, "clip %g", clips[i]);
    CHECK(positive.high == both.high && positive.low == 0, "clip %g", clips[i]);
    CHECK(both.high >= 0x1p52 && both.high < 0x1p53, "clip %g is %g steps", clips[i], both.high);
    CHECK((double)both.high_steps == both.high && (double)both.low_steps == both.low, "clip %g",
          clips[i]);
    int exponent;
    CHECK(frexp(both.scale, &exponent) == 0.5, "scale %a is no power of two", both.scale);
  }
}

static void values_that_are_extreme(void) {
  const double values[] = {INFINITY,     -INFINITY,     DBL_MAX, -DBL_MAX, -0x1p63, 0x1p63,
                           DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MIN, 0.0,      -0.0,    1e-160,
                           1e150,        0.5,           1.5,     -2.5,     1e19};
  int count = sizeof values / sizeof *values;
  for (int c = 0; c < CLIPS; c++) {
    for (int i = 0; i < 2 * count * count; i++) {
      double first = values[i / 2 % count], second = values[i / 2 / count];
      struct row rows[3] = {of_unit(7, first), of_unit(7, second), {.who = WHO_NULL, .x = first}};
      CHECK(same(clips[c], i % 2, rows, 3), "clip %g: %g and %g", clips[c], first, second);
    }
  }
}

/* The values are half a step apart, so that rounding matters, or next to the bounds. */
static void rows_next_to_a_bound(void) {
  double step = 1 / scalar_bounds(M_PI, 0).scale;
  double values[] = {
      M_PI,       nextafter(M_PI, 4), nextafter(M_PI, 3),     step / 2,
      step * 1.5, step * 2.5,         nextafter(step / 2, 1), nextafter(step / 2, 0)};
  for (int i = 0; i < 16; i++) {
    struct row row = of_unit(1, i % 2 ? values[i / 2] : -values[i / 2]);
    CHECK(same(M_PI, 0, &row, 1), "%a", row.x);
  }
}

/* The saturated rows of one unit cancel. The total is exact in every order of the rows. */
static void ten_thousand_rows_of_one_unit(void) {
  struct release release = summing(1, 0, 1);
  struct row *rows = malloc(10001 * sizeof *rows);
  for (int i = 0; i < 10000; i++) rows[i] = of_unit(1, i % 2 ? DBL_MAX : -INFINITY);
  rows[10000] = (struct row){.who = WHO_REAL, .unit = 1, .x = 0.375};
  for (int run = 0; run < 3; run++) {
    CHECK(total_for(&release, rows, 10001) == (int128)(0.375 * release.shape.scale), "run %d", run);
    shuffle(rows, 10001);
  }
  for (int i = 0; i < 10001; i++) rows[i] = of_unit(1, INFINITY);
  CHECK(same(1, 0, rows, 10001), "infinities");
  free(rows);
}

static void random_tables_like_the_reference(void) {
  static const double magnitudes[] = {1e-3, 1, 100, 1e10, 1e25, 1e300};
  struct row rows[300];
  for (int run = 0; run < 2000; run++) {
    int count = run ? 1 + below(300) : 0, nonnegative = below(2);
    double clip = clips[below(4)];
    for (int i = 0; i < count; i++) {
      rows[i] = (struct row){.who = (enum who)below(5), .unit = below(1 + run % 40)};
      if (rows[i].who == WHO_REAL) rows[i].unit /= 2;
      rows[i].x = magnitudes[below(6)] * (2 * uniform() - 1);
    }
    CHECK(same(clip, nonnegative, rows, count), "run %d", run);
    shuffle(rows, count);
    CHECK(same(clip, nonnegative, rows, count), "run %d, in another order", run);
  }
}

/* The table grows, and every unit keeps its total. Each unit has two rows, far apart. */
static void a_hundred_thousand_units(void) {
  enum { UNITS = 100000 };
  struct release release = summing(3, 0, 1);
  struct bounds bounds = design_bounds(&release.shape);
  struct row *rows = malloc(2 * UNITS * sizeof *rows);
  int128 want = 0;
  for (int i = 0; i < UNITS; i++) {
    double first = (double)(i % 1000) / 256, second = (double)(i % 777) / 256 - 1;
    rows[i] = (struct row){.who = (enum who)(1 + i % 4), .unit = i, .x = first};
    if (rows[i].who == WHO_INTEGER) rows[i].unit *= 0x1p32;
    if (rows[i].who == WHO_REAL) rows[i].unit += 0.5;
    rows[UNITS + i] = rows[i];
    rows[UNITS + i].x = second;
    want += clamped((int128)((first + second) * bounds.scale), &bounds);
  }
  CHECK(total_for(&release, rows, 2 * UNITS) == want, "in order");
  shuffle(rows, 2 * UNITS);
  CHECK(total_for(&release, rows, 2 * UNITS) == want, "shuffled");
  free(rows);
}

/* The totals of some units exceed 64 bits for a while. The total of another unit always fits 64
** bits. */
static void large_totals_are_not_consumed(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  struct scalar_sum accumulator;
  CHECK(scalar_sum_open(&accumulator, &bounds, 1, 0), "open");
  struct identity text = identity_bytes(scalar_sum_secret(&accumulator), "a", 1, 1);
  for (int i = 0; i < 3000; i++) { /* the totals reach 2^64 steps and return to an eighth of that */
    double x = i < 1500 ? 4 : i < 2999 ? -4 : -3.875;
    CHECK(scalar_sum_add_unit(&accumulator, identity_integer(1), x) &&
              scalar_sum_add_unit(&accumulator, text, -x),
          "row %d", i);
  }
  CHECK(scalar_sum_add_unit(&accumulator, identity_integer(2), 0.5), "row");
  CHECK(scalar_sum_add_unit(&accumulator, identity_null(), 0.25), "row");
  int128 total = 0;
  for (int i = 0; i < 3; i++) {
    CHECK(scalar_sum_total(&accumulator, &total) && total == (int128)(0.75 * bounds.scale),
          "time %d: %g", i, (double)total / bounds.scale);
  }
  CHECK(scalar_sum_add_unit(&accumulator, identity_integer(1), 0.25) &&
            scalar_sum_total(&accumulator, &total) && total == (int128)(bounds.scale),
        "more: %g", (double)total / bounds.scale);
  scalar_sum_close(&accumulator);
}

int main(void) {
  RUN(bounds_are_exact);
  RUN(values_that_are_extreme);
  RUN(rows_next_to_a_bound);
  RUN(ten_thousand_rows_of_one_unit);
  RUN(random_tables_like_the_reference);
  RUN(a_hundred_thousand_units);
  RUN(large_totals_are_not_consumed);
  FINISH();
}
