/* test_neighbour_vectors.c: checks that no pair of neighbours differs by more than the distance
** that the release charges for.
**
** The tests use tables and their neighbours for every family, with and without units, under both
** adjacencies, in both norms, with public and with private keys. The exact totals are never further
** apart than shape.distance, and the rounded totals never further than design.sensitivity, which
** for the sum norm is exactly floor(distance / 2^shift) + touched. Both runs of a pair have the
** same secret (tables.h), so they keep the same private keys. The test matches keys by their texts;
** absent keys count as 0.
**
** Worst cases for each family show which fraction of the charged distance occurs. The whole
** distance occurs, with two exceptions. Both exceptions replace a unit:
**   sums of rows with private keys  0.943 (0.8 in the sum norm), because one row cannot have its
**   count and its sum in different cells
**   means of vectors of 10 numbers in the sum norm  0.8, because all units have the same count
** The tests also fail if a sensitivity is larger than these fractions allow. */
#include "check.h"

#include <float.h>

#include "tables.h"

static const char *const names[] = {"sum",  "mean", "spread",    "vector",  "vector mean",
                                    "bins", "tree", "key count", "key sum", "key mean"};

/* ---- distances ------------------------------------------------------------------------------- */

struct apart {
  long double fine, lattice; /* largest distances, relative to the charged distance */
};

static const double rates[] = {1e-12, 1e-6, 0.013, 0.5, 1e3, 1e6};
enum { RATES = 6, MIDDLE = 3 };

static uint128 square_of(int128 x) {
  return (uint128)x * (uint128)x;
}

/* Returns the amount that a difference in one coordinate adds to the distance in the sum norm, or
** to the square of the Euclidean distance. */
static uint128 part_of(const struct layout *shape, int128 x) {
  return shape->is_l1 ? (uint128)(x < 0 ? -x : x) : square_of(x);
}

static uint128 bound_of(const struct layout *shape, uint64_t distance) {
  return part_of(shape, (int128)distance);
}

/* Returns the ratio of a distance, given by the sum of its parts, to the charged distance. */
static long double ratio_of(const struct layout *shape, uint128 sum, uint64_t distance) {
  long double ratio = (long double)sum / (long double)bound_of(shape, distance);
  return shape->is_l1 ? ratio : sqrtl(ratio);
}

/* Compares the totals of two tables with the charged distances. */
static struct apart apart_of(const struct release *release, const int128 *a, const int128 *b,
                             size_t count, const char *what) {
  const struct layout *shape = &release->shape;
  const char *name = names[number_of(shape->family)];
  struct apart apart = {0, 0};
  uint128 sum = 0;
  int differ = 0, huge = 0;
  for (size_t i = 0; i < count; i++) {
    int128 moved = a[i] - b[i];
    differ += moved != 0;
    huge |= moved > (int128)1 << 55 || moved < -((int128)1 << 55);
    if (!huge) sum += part_of(shape, moved);
  }
  CHECK(!huge && sum <= bound_of(shape, shape->distance), "%s, %s: %.9Lf of the distance", name,
        what, ratio_of(shape, sum, shape->distance));
  CHECK(differ <= shape->touched, "%s, %s: %d coordinates of %d", name, what, differ,
        shape->touched);
  apart.fine = ratio_of(shape, sum, shape->distance);
  for (int r = 0; r < RATES; r++) {
    struct design design;
    int is_l1 = shape->is_l1;
    design_make(&design, shape, is_l1 ? fmin(rates[r], laplace_noise.most) : rates[r],
                is_l1 ? &laplace_noise : &gaussian_noise);
    CHECK(!is_l1 ||
              design.sensitivity == (shape->distance >> design.shift) + (uint64_t)shape->touched,
          "%s: a sensitivity of %llu", name, (unsigned long long)design.sensitivity);
    uint128 steps = 0;
    for (size_t i = 0; i < count; i++) {
      int128 moved = (int128)lattice_round(a[i], design.shift) - lattice_round(b[i], design.shift);
      steps += part_of(shape, moved);
    }
    long double ratio = ratio_of(shape, steps, design.sensitivity);
    CHECK(steps <= bound_of(shape, design.sensitivity), "%s, %s, rate %g: %.9Lf of %llu", name,
          what, rates[r], ratio, (unsigned long long)design.sensitivity);
    if (r == MIDDLE) apart.lattice = ratio;
  }
  return apart;
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { MOST_ROWS = 1000, BASE_ROWS = 60, MOST_DIMENSION = 40 };

/* A table without one unit, and two versions of this unit. */
struct pair {
  /* The rows of the base table, followed by room for the rows of the unit. */
  struct row rows[BASE_ROWS + MOST_ROWS];
  struct row units[2][MOST_ROWS];
  int base, counts[2];
};

/* Returns the totals with one version of the unit, or without the unit (version -1). The rows are
** in random order. */
static int128 *totals_with(const struct release *release, struct pair *pair, int version,
                           int keys) {
  int count = version < 0 ? 0 : pair->counts[version];
  static struct row rows[BASE_ROWS + MOST_ROWS];
  memcpy(rows, pair->rows, sizeof *rows * (size_t)pair->base);
  if (count) memcpy(rows + pair->base, pair->units[version], sizeof *rows * (size_t)count);
  shuffle(rows, pair->base + count);
  return totals_of(release, rows, pair->base + count, keys);
}

/* Compares a table with its neighbours: with and without each version, and the two versions. */
static struct apart compare(const struct release *release, struct pair *pair, int replace, int keys,
                            const char *what) {
  size_t count = totals_count(release, keys);
  struct apart worst = {0, 0};
  for (int i = 0; i < 2 + replace; i++) {
    int128 *a = totals_with(release, pair, i == 1, keys);
    int128 *b = totals_with(release, pair, i == 2 ? 1 : -1, keys);
    if (i == 2) {
      free(a);
      a = totals_with(release, pair, 0, keys);
    }
    CHECK(a && b, "memory");
    struct apart apart = apart_of(release, a, b, count, what);
    worst.fine = fmaxl(worst.fine, apart.fine);
    worst.lattice = fmaxl(worst.lattice, apart.lattice);
    free(a);
    free(b);
  }
  return worst;
}

/* ---- random rows ----------------------------------------------------------------------------- */

static const double strange[] = {
    1e308, -1e308, INFINITY, -INFINITY, NAN, DBL_MAX, -DBL_MAX, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0,
    -0.0,  1e-310, 0.5,      1,         -1,  1e9,     -1e9,     1e25,         -1e25,         1e150};
enum { STRANGE = sizeof strange / sizeof *strange };

/* How the rows of a unit are chosen. */
struct manner {
  /* 0: odd values; 1: ordinary values; 2: one value; 3: an end of the range or far outside. */
  int values;
  int keys; /* 0: one key; 1: any key; 2: mostly one key; 3: keys in turn */
  double value;
  int key, key_end;
};

static double random_value(const struct release *release, const struct manner *manner) {
  double size = fmax(release->question.clip, 1);
  if (manner->values == 0) return strange[below(STRANGE)];
  if (manner->values == 1) return size * (4 * uniform() - 2);
  return manner->value;
}

/* A pool of vectors. The vectors point in all kinds of directions and have all sizes. All numbers
** are finite, as after vector_text_read(). */
static double pool[200][MOST_DIMENSION];

static void fill_pool(double clip) {
  for (int i = 0; i < 200; i++) {
    static const double sizes[] = {1, 1, 1e-3, 1e-9, 5, 1e6, 1e100, 1e300, 1.7e308, 1e-320};
    double size = sizes[below(10)] * (i % 3 ? clip : 1);
    if (!(size < 1.7e308)) size = 1.7e308;
    int kind = below(4), place = below(MOST_DIMENSION);
    for (int j = 0; j < MOST_DIMENSION; j++) {
      pool[i][j] = size * (2 * uniform() - 1);
      if (kind == 1) pool[i][j] = j % MOST_DIMENSION == place % (1 + j) ? size : 0;
      if (kind == 2) pool[i][j] = i & 1 ? -size : size;
      if (kind == 3) pool[i][j] = j == 0 ? (i & 1 ? -size : size) : 0;
    }
  }
}

static struct row random_row(const struct release *release, const struct manner *manner, int i) {
  struct row row = {.who = WHO_INTEGER, .unit = 1000000, .x = random_value(release, manner)};
  switch (manner->keys) {
  case 0: row.key = manner->key; break;
  case 1: row.key = below(manner->key_end); break;
  case 2: row.key = below(20) ? manner->key : below(manner->key_end); break;
  default: row.key = i % manner->key_end;
  }
  row.v = pool[manner->values == 2 ? manner->key % 200 : below(200)];
  /* The number x chooses the bin or the leaf. */
  enum number family = number_of(release->question.family);
  if ((family == BINS || family == TREE) && manner->values != 0)
    row.x = release->question.low +
            (release->question.high - release->question.low) * (row.key + 0.5) / manner->key_end;
  return row;
}

static int random_unit(const struct release *release, struct row *rows, int key_end) {
  const struct contribution *question = &release->question;
  double size = fmax(question->clip, 1);
  struct manner manner = {below(4), below(4), strange[below(STRANGE)], below(key_end), key_end};
  if (manner.values == 3) manner.value = below(2) ? question->high : question->low;
  if (manner.values == 3 && below(3) == 0) manner.value = below(2) ? size : -size;
  int count = release->by_unit ? (int)exp(uniform() * 6.9) : 1;
  if (release->by_unit && below(4) == 0) count = (int)fmin(size, MOST_ROWS);
  for (int i = 0; i < count; i++) rows[i] = random_row(release, &manner, i);
  return count;
}

static void random_pair(const struct release *release, struct pair *pair, int key_end) {
  pair->base = below(BASE_ROWS);
  struct manner manner = {below(2), 1, 0, 0, key_end};
  for (int i = 0; i < pair->base; i++) {
    pair->rows[i] = random_row(release, &manner, i);
    pair->rows[i].who = (enum who)below(5);
    pair->rows[i].unit = below(8);
  }
  for (int i = 0; i < 2; i++) pair->counts[i] = random_unit(release, pair->units[i], key_end);
}

/* ---- every family, at random ----------------------------------------------------------------- */

/* Returns whether the clip of a family is a number of rows. */
static int is_of_rows(enum number family) {
  return family != SUM && family != VECTOR && family != VECTOR_MEAN && family != KEY_SUM;
}

static struct contribution random_question(enum number family, int is_l1, int by_unit,
                                           int is_private) {
  static const double clips[] = {1, 1, 3, 240, 0.1, 1000, 5.5};
  struct contribution question = {
      .family = family_in(family, is_l1), .clip = clips[below(7)], .low = -2, .high = 2};
  if (!is_of_rows(family)) question.clip *= below(3) ? 1 : below(2) ? 1e30 : 1e-3;
  /* release/parameters.c requires this. */
  if (!by_unit && is_of_rows(family)) question.clip = fmin(question.clip, 1);
  if (below(4) == 0) question.low = -1e150, question.high = 1e150;
  if (below(4) == 0) question.low = 1e-9, question.high = 2e-9;
  question.nonnegative = below(2);
  question.size = 1 + below(MOST_DIMENSION);
  if (family == TREE) question.size = 2 << below(9);
  if (family >= KEY_COUNT) question.keys = is_private ? KEYS_PRIVATE : 1 + below(30);
  question.max_groups = !is_private ? 0 : by_unit ? 1 + below(12) : 1;
  return question;
}

static void random_neighbours(enum number family) {
  static struct pair pair;
  enum { RUNS = 120 };
  for (int flags = 0; flags < 16; flags++) {
    int by_unit = flags & 1, replace = flags >> 1 & 1, is_private = flags >> 2 & 1;
    int is_l1 = flags >> 3;
    if ((is_private && family < KEY_COUNT) || (is_l1 && !families[family]->l1)) continue;
    for (int run = 0; run < RUNS; run++) {
      struct contribution question = random_question(family, is_l1, by_unit, is_private);
      struct release release = release_of(&question, by_unit, replace);
      int key_end = is_private                         ? 40
                    : family == BINS || family == TREE ? question.size
                                                       : question.keys + 3;
      fill_pool(question.clip);
      entropy_seed = random_bits();
      random_pair(&release, &pair, key_end);
      compare(&release, &pair, replace, key_end, "at random");
    }
  }
}

static void sums_at_random(void) {
  random_neighbours(SUM);
}
static void means_at_random(void) {
  random_neighbours(MEAN);
}
static void spreads_at_random(void) {
  random_neighbours(SPREAD);
}
static void vectors_at_random(void) {
  random_neighbours(VECTOR);
}
static void vector_means_at_random(void) {
  random_neighbours(VECTOR_MEAN);
}
static void bins_at_random(void) {
  random_neighbours(BINS);
}
static void trees_at_random(void) {
  random_neighbours(TREE);
}
static void key_counts_at_random(void) {
  random_neighbours(KEY_COUNT);
}
static void key_sums_at_random(void) {
  random_neighbours(KEY_SUM);
}
static void key_means_at_random(void) {
  random_neighbours(KEY_MEAN);
}

/* ---- worst cases ----------------------------------------------------------------------------- */

static const double plus[MOST_DIMENSION] = {1e300}, minus[MOST_DIMENSION] = {-1e300};
static const double less[MOST_DIMENSION] = {-1e3}; /* not so long that it saturates */

static void repeat(struct row *rows, int *count, int times, int key, double x, const double *v) {
  for (int i = 0; i < times; i++)
    rows[(*count)++] =
        (struct row){.who = WHO_INTEGER, .unit = 1000000, .key = key, .x = x, .v = v};
}

/* Makes two versions of a unit whose vectors are as long as possible and as far apart as possible.
** The range of x is [-1, 1]. */
static void worst_pair(const struct release *release, struct pair *pair) {
  enum number family = number_of(release->question.family);
  int rows = release->by_unit ? 700 : 1, is_private = release->question.keys == KEYS_PRIVATE;
  double far = is_of_rows(family) ? 1 : 1e300, other = -far;
  int elsewhere = family == KEY_COUNT;                          /* another key */
  if (family == SPREAD && !release->shape.is_l1) other = -0.15; /* found by search */
  if (family == SUM && release->question.nonnegative) other = 0;
  pair->base = pair->counts[0] = pair->counts[1] = 0;
  repeat(pair->units[0], &pair->counts[0], rows, 0, far, plus);
  repeat(pair->units[1], &pair->counts[1], rows, elsewhere, other,
         family == VECTOR_MEAN ? less : minus);
  if (family != KEY_SUM || !is_private || !release->by_unit) return;
  /* The two versions have their counts in different cells and their sums in the same cell. */
  pair->counts[0] = pair->counts[1] = 0;
  repeat(pair->units[0], &pair->counts[0], 999, 1, 0, plus);
  repeat(pair->units[1], &pair->counts[1], 999, 2, 0, plus);
  repeat(pair->units[0], &pair->counts[0], 1, 0, far, plus);
  repeat(pair->units[1], &pair->counts[1], 1, 0, -far, plus);
}

/* Returns the fraction of the charged distance that can occur (see the head of this file). */
static long double expected(const struct release *release, int replace) {
  enum number family = number_of(release->question.family);
  int is_private = release->question.keys == KEYS_PRIVATE, is_l1 = release->shape.is_l1;
  if (replace && family == KEY_SUM && is_private && !release->by_unit)
    return is_l1 ? 0.79L : 0.942L;
  return 0.99L;
}

static void check_worst(struct contribution question, int by_unit, int replace) {
  static struct pair pair;
  struct release release = release_of(&question, by_unit, replace);
  worst_pair(&release, &pair);
  struct apart worst = {0, 0};
  for (int run = 0; run < 5; run++) { /* five runs, because the choice of private keys is random */
    entropy_seed = random_bits();
    struct apart apart = compare(&release, &pair, replace, 4, "the worst");
    worst.fine = fmaxl(worst.fine, apart.fine);
    worst.lattice = fmaxl(worst.lattice, apart.lattice);
  }
  const char *keys = question.keys < 0 ? ", private keys" : "";
  printf("# %s of %s%s, %s%s: %.4Lf of the distance, %.4Lf of the sensitivity\n",
         names[number_of(question.family)], by_unit ? "units" : "rows", keys,
         replace ? "replace" : "add-remove", question.family->is_l1 ? ", sum norm" : "", worst.fine,
         worst.lattice);
  long double least = expected(&release, replace);
  CHECK(worst.fine >= least && worst.lattice >= least,
        "%s: only %.4Lf and %.4Lf of what is charged", names[number_of(question.family)],
        worst.fine, worst.lattice);
}

static void worst_cases_come_near(void) {
  for (int family = SUM; family <= KEY_MEAN; family++) {
    for (int flags = 0; flags < 16; flags++) {
      int by_unit = flags & 1, replace = flags >> 1 & 1, is_private = flags >> 2 & 1;
      int has_keys = family >= KEY_COUNT, is_l1 = flags >> 3;
      if ((is_private && !has_keys) || (is_l1 && !families[family]->l1)) continue;
      struct contribution question = {
          .family = family_in((enum number)family, is_l1), .clip = 1, .low = -1, .high = 1};
      question.size = family == TREE ? 1024 : 10;
      question.keys = !has_keys ? 0 : is_private ? KEYS_PRIVATE : 4;
      question.max_groups = is_private ? (by_unit ? 4 : 1) : 0;
      question.nonnegative = family == SUM && flags > 1;
      if (by_unit) question.clip = 17;
      check_worst(question, by_unit, replace);
    }
  }
}

/* Tests the worst cases with a thousand cells or components, where truncation has the largest
** effect. */
static void worst_cases_over_many_cells(void) {
  static struct pair pair;
  static double wide[2][LAYOUT_MAX_SIZE];
  for (int j = 0; j < LAYOUT_MAX_SIZE; j++) {
    wide[0][j] = 1e3 * (2 * uniform() - 1);
    wide[1][j] = -wide[0][j];
  }
  static const struct {
    enum number family;
    int size, keys, halves; /* halves = 1: the two versions have different cells */
  } cases[] = {
      {VECTOR, LAYOUT_MAX_SIZE, 0, 0}, {VECTOR_MEAN, LAYOUT_MAX_SIZE, 0, 0},
      {BINS, MOST_ROWS, 0, 1},         {TREE, 512, 0, 1},
      {KEY_COUNT, 0, MOST_ROWS, 1},    {KEY_SUM, 0, MOST_ROWS, 0},
      {KEY_MEAN, 0, MOST_ROWS, 0},
  };
  for (int c = 0; c < 7; c++) {
    for (int flags = 0; flags < 4; flags++) {
      int replace = flags & 1, is_l1 = flags >> 1;
      struct contribution question = {
          .family = family_in(cases[c].family, is_l1), .clip = 3.7, .low = -1, .high = 1};
      question.size = cases[c].size;
      question.keys = cases[c].keys;
      struct release release = release_of(&question, 1, replace);
      for (int i = 0; i < 2; i++) {
        pair.counts[i] = 0;
        for (int row = 0; row < MOST_ROWS; row++) {
          int key = cases[c].halves ? row / 2 + i * MOST_ROWS / 2 : row;
          double x = i ? -1e9 : 1e9;
          if (!cases[c].keys) x = 2 * (key + 0.5) / MOST_ROWS - 1;
          repeat(pair.units[i], &pair.counts[i], 1, key, x, wide[i]);
        }
      }
      pair.base = 0;
      struct apart worst = compare(&release, &pair, replace, 0, "many cells");
      /* The sensitivity in the sum norm allows one step of rounding for each coordinate, but
      ** rounding moves few coordinates by a whole step. In a tree, rows that lie apart weigh as
      ** much as rows that lie together, so their counts have a smaller norm. */
      long double least = cases[c].family == TREE ? 0 : is_l1 ? 0.94L : 0.99L;
      CHECK(worst.fine >= least && worst.lattice >= least, "%s: only %.4Lf and %.4Lf",
            names[number_of(question.family)], worst.fine, worst.lattice);
    }
  }
}

int main(void) {
  RUN(sums_at_random);
  RUN(means_at_random);
  RUN(spreads_at_random);
  RUN(vectors_at_random);
  RUN(vector_means_at_random);
  RUN(bins_at_random);
  RUN(trees_at_random);
  RUN(key_counts_at_random);
  RUN(key_sums_at_random);
  RUN(key_means_at_random);
  RUN(worst_cases_come_near);
  RUN(worst_cases_over_many_cells);
  FINISH();
}
