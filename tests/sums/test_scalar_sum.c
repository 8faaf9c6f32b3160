/*
** test_scalar_sum.c: compares scalar_sum.h with a reference without hashing. The reference compares
** the unit of every row with the unit of every other row, and uses long double and 128-bit
** arithmetic.
*/
#include "check.h"
#include "random.h"

#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h"
#include "sums/scalar_sum.h"

/* ---- rows ------------------------------------------------------------------------------------ */

enum kind { KIND_NULL, KIND_INTEGER, KIND_REAL, KIND_TEXT, KIND_BLOB };

struct row {
  enum kind kind;
  int64_t integer;
  double real;
  const char *bytes;
  size_t size;
  double value;
};

static struct row of_null(double value) {
  return (struct row){.kind = KIND_NULL, .value = value};
}
static struct row of_integer(int64_t unit, double value) {
  return (struct row){.kind = KIND_INTEGER, .integer = unit, .value = value};
}
static struct row of_real(double unit, double value) {
  return (struct row){.kind = KIND_REAL, .real = unit, .value = value};
}
static struct row of_bytes(enum kind kind, const char *unit, double value) {
  return (struct row){.kind = kind, .bytes = unit, .size = strlen(unit), .value = value};
}

static void shuffle(struct row *rows, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = (int)(random_bits() % (uint64_t)(i + 1));
    struct row kept = rows[i];
    rows[i] = rows[j];
    rows[j] = kept;
  }
}

/* ---- the extension's answer and the reference ------------------------------------------------ */

static int128 total_of(const struct bounds *bounds, const struct row *rows, int count,
                       int by_unit) {
  struct scalar_sum accumulator;
  int128 total = -1;
  int going = scalar_sum_open(&accumulator, bounds, by_unit, 0);
  for (int i = 0; i < count && going; i++) {
    const struct row *r = &rows[i];
    if (!by_unit) {
      scalar_sum_add_row(&accumulator, r->value);
      continue;
    }
    struct identity unit;
    switch (r->kind) {
    case KIND_NULL: unit = identity_null(); break;
    case KIND_INTEGER: unit = identity_integer(r->integer); break;
    case KIND_REAL: unit = identity_real(r->real); break;
    default:
      unit =
          identity_bytes(scalar_sum_secret(&accumulator), r->bytes, r->size, r->kind == KIND_TEXT);
    }
    going = scalar_sum_add_unit(&accumulator, unit, r->value);
  }
  if (going) going = scalar_sum_total(&accumulator, &total);
  scalar_sum_close(&accumulator);
  CHECK(going, "failed on %d rows", count);
  return total;
}

/*
** Returns whether two rows belong to one unit. A long double can represent every int64_t and every
** double.
*/
static int same_unit(const struct row *a, const struct row *b) {
  int a_number = a->kind == KIND_INTEGER || a->kind == KIND_REAL;
  int b_number = b->kind == KIND_INTEGER || b->kind == KIND_REAL;
  if (a_number && b_number) {
    long double x = a->kind == KIND_INTEGER ? (long double)a->integer : (long double)a->real;
    long double y = b->kind == KIND_INTEGER ? (long double)b->integer : (long double)b->real;
    return x == y;
  }
  if (a->kind != b->kind) return 0;
  return a->kind == KIND_NULL || (a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* Returns a value in steps, rounded to nearest with halves to even, and saturated at +-2^90. */
static int128 steps_of(double value, double scale) {
  long double x = nearbyintl((long double)value * (long double)scale);
  if (x >= 0x1p90L) return (int128)1 << 90;
  if (x <= -0x1p90L) return -((int128)1 << 90);
  return (int128)x;
}

static int128 clamped(int128 x, const struct bounds *bounds) {
  if (x < (int128)bounds->low) return (int128)bounds->low;
  return x > (int128)bounds->high ? (int128)bounds->high : x;
}

static int128 reference(const struct bounds *bounds, const struct row *rows, int count,
                        int by_unit) {
  int128 total = 0;
  char *done = calloc(1, (size_t)count + 1);
  for (int i = 0; i < count; i++) {
    if (done[i]) continue;
    int128 unit = steps_of(rows[i].value, bounds->scale);
    for (int j = i + 1; j < count && by_unit; j++) {
      if (done[j] || !same_unit(&rows[i], &rows[j])) continue;
      done[j] = 1;
      unit += steps_of(rows[j].value, bounds->scale);
    }
    total += clamped(unit, bounds);
  }
  free(done);
  return total;
}

static int same(const struct bounds *bounds, const struct row *rows, int count, int by_unit) {
  return total_of(bounds, rows, count, by_unit) == reference(bounds, rows, count, by_unit);
}

/*
** The clips to test: some have few significant bits, some have 53 bits, and two are the smallest
** and the largest clip.
*/
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

static void every_order_of_six_rows(void) {
  struct bounds bounds = scalar_bounds(10, 0);
  struct row rows[] = {of_integer(1, 3.7),  of_real(1.0, 9.9), of_integer(2, -1e300),
                       of_integer(2, 1e17), of_null(0.1),      of_bytes(KIND_TEXT, "1", INFINITY)};
  int128 want = reference(&bounds, rows, 6, 1);
  int wrong = 0, orders = 0, index[6] = {0, 0, 0, 0, 0, 0};
  /* Goes through all 6^6 sequences of six places, of which 720 are permutations. */
  for (int code = 0; code < 46656; code++) {
    int seen = 0;
    for (int i = 0, c = code; i < 6; i++, c /= 6) seen |= 1 << (index[i] = c % 6);
    if (seen != 63) continue;
    struct row order[6];
    for (int i = 0; i < 6; i++) order[i] = rows[index[i]];
    wrong += total_of(&bounds, order, 6, 1) != want;
    orders++;
  }
  CHECK(orders == 720 && wrong == 0, "%d of %d orders differ", wrong, orders);
}

static void units_that_are_equal_as_keys(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  double scale = bounds.scale;
  const struct {
    struct row a, b;
    int one;
  } pairs[] = {
      {of_integer(1, 1), of_real(1.0, 1), 1},
      {of_real(0.0, 1), of_real(-0.0, 1), 1},
      {of_integer(0, 1), of_real(-0.0, 1), 1},
      {of_null(1), of_null(1), 1},
      {of_integer(INT64_MIN, 1), of_real(-0x1p63, 1), 1},
      {of_real(0x1p62, 1), of_integer((int64_t)1 << 62, 1), 1},
      {of_real(0.5, 1), of_real(0.5, 1), 1},
      {of_real(INFINITY, 1), of_real(INFINITY, 1), 1},
      {of_real(0x1p63, 1), of_real(0x1p63, 1), 1},
      {of_bytes(KIND_TEXT, "", 1), of_bytes(KIND_TEXT, "", 1), 1},
      {of_integer(INT64_MAX, 1), of_real(0x1p63, 1), 0},
      {of_integer(INT64_MIN, 1), of_real(0x1p63, 1), 0},
      {of_integer(((int64_t)1 << 53) + 1, 1), of_real(0x1p53, 1), 0},
      {of_real(INFINITY, 1), of_real(-INFINITY, 1), 0},
      {of_integer(1, 1), of_bytes(KIND_TEXT, "1", 1), 0},
      {of_integer(1, 1), of_bytes(KIND_BLOB, "1", 1), 0},
      {of_bytes(KIND_TEXT, "1", 1), of_bytes(KIND_BLOB, "1", 1), 0},
      {of_bytes(KIND_TEXT, "", 1), of_bytes(KIND_BLOB, "", 1), 0},
      {of_bytes(KIND_TEXT, "", 1), of_null(1), 0},
      {of_bytes(KIND_TEXT, "a", 1), of_bytes(KIND_TEXT, "A", 1), 0},
      {of_bytes(KIND_TEXT, "a", 1), of_bytes(KIND_TEXT, "a ", 1), 0},
      {of_integer(0, 1), of_null(1), 0},
      {of_real(0.0, 1), of_real(5e-324, 1), 0},
      {of_real(0x1p-1, 1), of_integer((int64_t)0x3fe0000000000000, 1), 0}, /* the bits of 0.5 */
  };
  for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++) {
    struct row rows[2] = {pairs[i].a, pairs[i].b};
    CHECK(same_unit(&rows[0], &rows[1]) == pairs[i].one, "pair %d of the test", i);
    int128 total = total_of(&bounds, rows, 2, 1);
    CHECK(total == (int128)((pairs[i].one ? 1 : 2) * scale), "pair %d: %g", i,
          (double)total / scale);
  }
}

static void text_keys_of_every_length(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  static char text[600];
  struct row rows[1200];
  memset(text, 'x', sizeof text);
  /* A text, its prefixes, and a blob with the same bytes are different units. */
  for (int i = 0; i < 600; i++) {
    rows[i] = (struct row){.kind = KIND_TEXT, .bytes = text, .size = (size_t)i, .value = 1};
    rows[600 + i] = rows[i];
    rows[600 + i].kind = KIND_BLOB;
  }
  CHECK(total_of(&bounds, rows, 1200, 1) == (int128)1200 * bounds.high_steps, "lengths collide");
  struct row empty[2] = {{.kind = KIND_BLOB, .bytes = 0, .size = 0, .value = 1},
                         {.kind = KIND_BLOB, .bytes = text, .size = 0, .value = 1}};
  CHECK(total_of(&bounds, empty, 2, 1) == (int128)bounds.high_steps, "empty blobs differ");
}

static void values_that_are_extreme(void) {
  const double values[] = {INFINITY,     -INFINITY,     DBL_MAX, -DBL_MAX, -0x1p63, 0x1p63,
                           DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MIN, 0.0,      -0.0,    1e-160,
                           1e150,        0.5,           1.5,     -2.5,     1e19};
  int count = sizeof values / sizeof *values;
  for (int c = 0; c < CLIPS; c++) {
    for (int nonnegative = 0; nonnegative < 2; nonnegative++) {
      struct bounds bounds = scalar_bounds(clips[c], nonnegative);
      for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
          struct row rows[3] = {of_integer(7, values[i]), of_integer(7, values[j]),
                                of_null(values[i])};
          CHECK(same(&bounds, rows, 3, 1), "clip %g: %g and %g by unit", clips[c], values[i],
                values[j]);
          CHECK(same(&bounds, rows, 3, 0), "clip %g: %g and %g by row", clips[c], values[i],
                values[j]);
        }
      }
    }
  }
}

/* The values are half a step apart, so that rounding matters, or next to the bounds. */
static void rows_next_to_a_bound(void) {
  struct bounds bounds = scalar_bounds(M_PI, 0);
  double step = 1 / bounds.scale;
  double values[] = {
      M_PI,       nextafter(M_PI, 4), nextafter(M_PI, 3),     step / 2,
      step * 1.5, step * 2.5,         nextafter(step / 2, 1), nextafter(step / 2, 0)};
  for (int i = 0; i < 8; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      struct row row = of_integer(1, sign * values[i]);
      CHECK(same(&bounds, &row, 1, 1) && same(&bounds, &row, 1, 0), "%a", sign * values[i]);
    }
  }
}

static void ten_thousand_rows_of_one_unit(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  struct row *rows = malloc(20000 * sizeof *rows);
  /* The saturated rows cancel. The remaining total is exact in every order of the rows. */
  for (int i = 0; i < 10000; i++) rows[i] = of_integer(1, i % 2 ? DBL_MAX : -INFINITY);
  rows[10000] = of_real(1.0, 0.375);
  for (int run = 0; run < 3; run++) {
    CHECK(total_of(&bounds, rows, 10001, 1) == (int128)(0.375 * bounds.scale), "run %d", run);
    shuffle(rows, 10001);
  }
  for (int i = 0; i < 20000; i++) rows[i] = of_integer(1, INFINITY);
  CHECK(total_of(&bounds, rows, 20000, 1) == (int128)bounds.high_steps, "20000 infinities");
  CHECK(total_of(&bounds, rows, 20000, 0) == (int128)20000 * bounds.high_steps, "by row");
  free(rows);
}

static struct row random_row(int units) {
  static const char *const names[] = {
      "", "1", "2", "1.0", "anna", "Anna", "a much longer name of a unit"};
  static const double magnitudes[] = {1e-3, 1, 100, 1e10, 1e25, 1e300};
  double value = magnitudes[random_bits() % 6] * ((double)(random_bits() >> 11) * 0x1p-52 - 1);
  int64_t unit = (int64_t)(random_bits() % (uint64_t)units);
  switch (random_bits() % 5) {
  case 0: return of_null(value);
  case 1: return of_integer(unit, value);
  case 2: return of_real((double)unit / 2, value);
  case 3: return of_bytes(KIND_TEXT, names[unit % 7], value);
  default: return of_bytes(KIND_BLOB, names[unit % 7], value);
  }
}

static void random_tables_like_the_reference(void) {
  struct row rows[300];
  for (int run = 0; run < 2000; run++) {
    int count = 1 + (int)(random_bits() % 300);
    struct bounds bounds = scalar_bounds(clips[random_bits() % 4], (int)(random_bits() % 2));
    for (int i = 0; i < count; i++) rows[i] = random_row(1 + run % 40);
    CHECK(same(&bounds, rows, count, 1), "run %d, by unit", run);
    CHECK(same(&bounds, rows, count, 0), "run %d, by row", run);
    int128 before = total_of(&bounds, rows, count, 1);
    shuffle(rows, count);
    CHECK(total_of(&bounds, rows, count, 1) == before, "run %d: the order matters", run);
  }
}

/* The table grows, and every unit keeps its total. Each unit has two rows, far apart. */
static void a_hundred_thousand_units(void) {
  enum { UNITS = 100000 };
  struct bounds bounds = scalar_bounds(3, 0);
  struct row *rows = malloc(2 * UNITS * sizeof *rows);
  static char names[UNITS][24];
  int128 want = 0;
  for (int i = 0; i < UNITS; i++) {
    double first = (double)(i % 1000) / 256, second = (double)(i % 777) / 256 - 1;
    snprintf(names[i], sizeof names[i], "unit-%d", i);
    rows[i] = i % 4 == 0   ? of_integer((int64_t)i << 32, first)
              : i % 4 == 1 ? of_real(i + 0.5, first)
              : i % 4 == 2 ? of_bytes(KIND_TEXT, names[i], first)
                           : of_bytes(KIND_BLOB, names[i], first);
    rows[UNITS + i] = rows[i];
    rows[UNITS + i].value = second;
    want += clamped((int128)((first + second) * bounds.scale), &bounds);
  }
  CHECK(total_of(&bounds, rows, 2 * UNITS, 1) == want, "in order");
  shuffle(rows, 2 * UNITS);
  CHECK(total_of(&bounds, rows, 2 * UNITS, 1) == want, "shuffled");
  free(rows);
}

static void no_rows(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  CHECK(total_of(&bounds, 0, 0, 1) == 0 && total_of(&bounds, 0, 0, 0) == 0, "not zero");
}

/* The total can be computed twice, and rows can be added afterwards. */
static void the_total_is_not_consumed(void) {
  struct bounds bounds = scalar_bounds(1, 0);
  struct scalar_sum accumulator;
  int128 first = 0, again = 0, more = 0;
  CHECK(scalar_sum_open(&accumulator, &bounds, 1, 0), "open");
  CHECK(scalar_sum_add_unit(&accumulator, identity_integer(1), 0.75), "row");
  CHECK(scalar_sum_total(&accumulator, &first) && scalar_sum_total(&accumulator, &again), "total");
  CHECK(scalar_sum_add_unit(&accumulator, identity_integer(1), 0.75) &&
            scalar_sum_total(&accumulator, &more),
        "row");
  CHECK(first == again && first == (int128)(0.75 * bounds.scale), "twice");
  CHECK(more == (int128)bounds.high_steps, "more");
  scalar_sum_close(&accumulator);
}

/*
** The totals of some units exceed 64 bits for a while. The total of another unit always fits 64
** bits.
*/
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
  RUN(every_order_of_six_rows);
  RUN(units_that_are_equal_as_keys);
  RUN(text_keys_of_every_length);
  RUN(values_that_are_extreme);
  RUN(rows_next_to_a_bound);
  RUN(ten_thousand_rows_of_one_unit);
  RUN(random_tables_like_the_reference);
  RUN(a_hundred_thousand_units);
  RUN(no_rows);
  RUN(the_total_is_not_consumed);
  RUN(large_totals_are_not_consumed);
  FINISH();
}
