/* test_vector_sum.c: compares sums.h with a reference without hashing. The reference compares
** the unit of every row with the unit of every other row. It stores the whole matrix of a unit,
** including zeros, and adds up the nodes of a tree one by one. test_clip.c tests clipping, and
** test_layout.c tests the values of rows.
**
** The tests also compare vector_sum_add_floats() with vector_sum_add_vector(), to the last bit.
**
** like_the_reference() and the tests of growth cover the requirements V1 and V2 of sums.h.
** The tests of private keys cover V3. */
#include "check.h"

#include <inttypes.h>
#include <float.h>

#include "base/number.h"
#include "sums/layout.h"
#include "tables.h"

/* ---- the reference --------------------------------------------------------------------------- */

enum { MOST_ROWS = 400, MOST_KEYS = 30, MOST_DIMENSION = 9 };

/* Returns the edges of the bins of a question. */
static const double *edges_of(const struct contribution *question) {
  static struct contribution last;
  static double edges[LAYOUT_MAX_BINS + 1];
  if (question->low != last.low || question->high != last.high || question->size != last.size)
    decimal_edges(question->low, question->high, question->size, edges);
  last = *question;
  return edges;
}

/* Returns the bin of a row in the cell of its key, or the cell if there are no bins (layout.h). */
static int slot_of(const struct release *release, const struct row *row) {
  const struct contribution *question = &release->question;
  int cell = question->keys ? row->key : 0;
  if (!question->family->has_bins) return cell;
  return cell * question->size + layout_bin(row->x, edges_of(question), question->size);
}

/* Adds the shares of a row in whole steps. The shares add up to exactly 1. Two shares are w and 1 -
** w. Three shares are (1 - w)^2, 2 w (1 - w) and w^2, and the middle share takes the rounding
** errors. */
static void add_shares(const struct release *release, double w, int128 *cell) {
  double all = release->shape.scale;
  int128 whole = (int128)all, top = steps_of(w * w, all);
  if (release->shape.components == 2) {
    cell[0] += steps_of(w, all);
    cell[1] += whole - steps_of(w, all);
  } else {
    int128 bottom = steps_of((1 - w) * (1 - w), all);
    if (bottom > whole - top) bottom = whole - top;
    cell[0] += bottom;
    cell[1] += whole - top - bottom;
    cell[2] += top;
  }
}

/* Adds a row to its cell. In these tests, rows of averages of vectors are within the clip, so they
** are not scaled. */
static void add_row(const struct release *release, const struct row *row, int128 *cell) {
  const struct contribution *question = &release->question;
  double scale = release->shape.scale, u = layout_centred(row->x, question->low, question->high);
  if (question->family->shares) {
    add_shares(release, (1 + u) / 2, cell);
    return;
  }
  if (release->shape.counts) *cell++ += release->shape.count_steps;
  if (question->family->has_bins) *cell += steps_of(1, scale);
  switch (number_of(question->family)) {
  case KEY_SPREAD:
  case SPREAD: cell[1] += steps_of(2 * u * u - 1, scale); /* fall through */
  case MEAN:
  case KEY_MEAN: cell[0] += steps_of(u, scale); break;
  case KEY_SUM: cell[0] += steps_of(row->x, scale); break;
  case VECTOR:
  case VECTOR_MEAN:
    for (int j = 0; j < question->size; j++) cell[j] += steps_of(row->v[j], scale);
    break;
  default: break;
  }
}

/* Adds one unit's bins to the totals of histograms or trees. With private keys, the first total of
** a cell counts the units that have a row in this cell. */
static void add_bins(const struct release *release, const int128 *rows, size_t cells,
                     int128 *totals) {
  const struct layout *shape = &release->shape;
  size_t bins = (size_t)shape->bins, first = (size_t)shape->selects;
  size_t width = (size_t)shape->width, nodes = width - first;
  int128 *values = calloc(cells * nodes, sizeof *values), *counts = calloc(cells, sizeof *counts);
  int128 *matrix = malloc(cells * bins * sizeof *matrix);
  memcpy(matrix, rows, cells * bins * sizeof *matrix);
  for (size_t cell = 0; cell < cells && shape->tree.levels; cell++)
    clip_sum(&matrix[cell * bins], bins, (int64_t)(release->question.clip * shape->scale));
  for (size_t i = 0; i < cells * bins; i++) {
    size_t cell = i / bins, bin = i % bins;
    if (matrix[i]) counts[cell] = shape->count_steps;
    if (!shape->tree.levels) values[cell * nodes + bin] = matrix[i];
    size_t at = cell * nodes;
    for (int level = 1; level <= shape->tree.levels; level++) {
      int bits = level * shape->tree.bits / shape->tree.levels;
      values[at + (bin >> (shape->tree.bits - bits))] += matrix[i];
      at += (size_t)1 << bits;
    }
  }
  if (first) clip_block(shape, &shape->blocks[0], counts, cells, 1);
  clip_block(shape, &shape->blocks[first], values, cells * nodes, 1);
  for (size_t cell = 0; cell < cells; cell++) {
    if (first) totals[cell * width] += counts[cell];
    for (size_t j = 0; j < nodes; j++) totals[cell * width + first + j] += values[cell * nodes + j];
  }
  free(matrix);
  free(values);
  free(counts);
}

/* Clips the matrix of one unit and adds it to the totals. */
static void add_unit(const struct release *release, const int128 *matrix, size_t cells,
                     int128 *totals) {
  const struct layout *shape = &release->shape;
  if (shape->family->has_bins) {
    add_bins(release, matrix, cells, totals);
    return;
  }
  size_t count = cells * (size_t)shape->components;
  int128 *values = malloc(count * sizeof *values);
  memcpy(values, matrix, count * sizeof *values);
  clip_vector(shape, values, cells, shape->components);
  for (size_t i = 0; i < count; i++) totals[i] += values[i];
  free(values);
}

static int128 *reference(const struct release *release, const struct row *rows, int count,
                         int keys) {
  const struct layout *shape = &release->shape;
  size_t cells = shape->cells ? (size_t)shape->cells : (size_t)keys;
  size_t slots = cells * (size_t)shape->bins, components = (size_t)shape->components;
  size_t size = slots * components * sizeof(int128);
  int128 *totals = calloc(totals_count(release, keys) + 1, sizeof *totals), *matrix = malloc(size);
  char *done = calloc((size_t)count + 1, 1);
  for (int i = 0; i < count; i++) {
    if (done[i]) continue;
    memset(matrix, 0, size);
    for (int j = i; j < count; j++) {
      if (done[j] || (j > i && (!release->by_unit || !same_unit(&rows[i], &rows[j])))) continue;
      done[j] = 1;
      int slot = slot_of(release, &rows[j]);
      if ((size_t)slot < slots) add_row(release, &rows[j], &matrix[(size_t)slot * components]);
    }
    add_unit(release, matrix, cells, totals);
  }
  free(done);
  free(matrix);
  return totals;
}

static int wrong_totals(const struct release *release, const int128 *got, const int128 *want,
                        int keys) {
  int wrong = 0;
  for (size_t i = 0; i < totals_count(release, keys) && got; i++) wrong += got[i] != want[i];
  return got ? wrong : -1;
}

/* ---- random tables --------------------------------------------------------------------------- */

static double pool[64][MOST_DIMENSION];

static void fill_pool(const struct contribution *question) {
  double width = question->family->is_l1 ? question->size : sqrt(question->size);
  double size = question->clip / width * (1 - 0x1p-30);
  int within = number_of(question->family) == VECTOR_MEAN;
  for (int i = 0; i < 64; i++) {
    for (int j = 0; j < MOST_DIMENSION; j++) {
      pool[i][j] = size * (2 * uniform() - 1);
      if (!within && i % 4 == 0) pool[i][j] *= 1e3;
      if (!within && i == 5) pool[i][j] = j ? -DBL_MAX : 1e300;
      if (i == 7) pool[i][j] = DBL_TRUE_MIN;
      if (i == 9) pool[i][j] = j % 2 ? 0 : -0.0;
    }
  }
}

static struct row random_row(const struct contribution *question, int units) {
  static const double strange[] = {INFINITY, -INFINITY, NAN, DBL_MAX, -DBL_MAX, DBL_TRUE_MIN};
  struct row row = {.who = (enum who)below(5), .unit = below(units)};
  if (row.who == WHO_REAL) row.unit /= 2;
  row.key = below(MOST_KEYS);
  row.x = question->low + (question->high - question->low) * (1.2 * uniform() - 0.1);
  if (below(3) == 0) row.x = question->clip * (2 * uniform() - 1);
  if (below(12) == 0) row.x = strange[below(6)];
  row.v = pool[below(64)];
  return row;
}

static struct contribution random_question(enum number family, int is_l1, int is_private) {
  static const double clips[] = {1, 3, 240, 0.1, 1000, 7.7};
  struct contribution question = {
      .family = family_in(family, is_l1), .clip = clips[below(6)], .low = -2, .high = 5};
  question.size = question.family->is_tree ? 2 << below(7) : 1 + below(MOST_DIMENSION);
  if (family >= KEY_COUNT) question.keys = is_private ? KEYS_PRIVATE : 1 + below(MOST_KEYS);
  question.max_groups = is_private ? MOST_KEYS : 0; /* 0: each unit keeps all its keys */
  return question;
}

static void compare(enum number family, int by_unit, int is_private) {
  static struct row rows[MOST_ROWS];
  for (int run = 0; run < 60; run++) {
    struct contribution question = random_question(family, run >> 1 & 1, is_private);
    struct release release = release_of(&question, by_unit, run & 1);
    int count = run ? below(MOST_ROWS) : 0, units = 1 + below(40);
    fill_pool(&question);
    entropy_seed = random_bits();
    for (int i = 0; i < count; i++) rows[i] = random_row(&question, units);
    int128 *want = reference(&release, rows, count, MOST_KEYS);
    /* Each run has another order of rows and another secret. */
    for (int order = 0; order < 3; order++) {
      int128 *got = totals_of(&release, rows, count, MOST_KEYS);
      CHECK(wrong_totals(&release, got, want, MOST_KEYS) == 0,
            "family %d by_unit %d private %d run %d: %d totals of %d rows", (int)family, by_unit,
            is_private, run, wrong_totals(&release, got, want, MOST_KEYS), count);
      free(got);
      shuffle(rows, count);
      entropy_seed = random_bits();
    }
    free(want);
  }
}

static void like_the_reference(void) {
  for (int family = MEAN; family <= KEY_TREE; family++) {
    for (int by_unit = 0; by_unit < 2; by_unit++) {
      compare((enum number)family, by_unit, 0);
      if (family >= KEY_COUNT) compare((enum number)family, by_unit, 1);
    }
  }
}

/* ---- rows of vectors' means ------------------------------------------------------------------ */

/* If the vector of a row is longer than the clip, it is first scaled down to the clip, and its
** direction stays the same. Other vectors do not change. */
static void rows_of_vector_means_fit_their_clip(void) {
  const double clips[] = {1, 1e-100, 1e100, 37.5}, sizes[] = {1e-3, 0.999, 1.001, 17, 1e12, 1e200};
  for (int c = 0; c < 8; c++) {
    for (int s = 0; s < 6; s++) {
      int is_l1 = c >= 4;
      double clip = clips[c % 4];
      struct contribution question = {
          .family = family_in(VECTOR_MEAN, is_l1), .clip = clip, .size = 5};
      struct release release = release_of(&question, 1, 0);
      double v[5], norm = 0;
      for (int j = 0; j < 5; j++) norm += pow(fabs(v[j] = 2 * uniform() - 1), is_l1 ? 1 : 2);
      for (int j = 0; j < 5; j++) v[j] *= clip * sizes[s] / (is_l1 ? norm : sqrt(norm));
      struct row rows[3] = {
          {.who = WHO_NULL, .v = v}, {.who = WHO_NULL, .v = v}, {.who = WHO_NULL, .v = v}};
      /* Three equal rows give the same result as one row. */
      for (int count = 1; count <= 3; count += 2) {
        int128 *totals = totals_of(&release, rows, count, 0);
        double rows_weight = (double)totals[0] / (double)release.shape.count_steps;
        CHECK(fabs(rows_weight - 1) <= 1e-11, "clip %g size %g: weighs %.17g", clip, sizes[s],
              rows_weight);
        for (int j = 0; j < 5; j++) {
          double got = (double)totals[1 + j] / release.shape.scale, want = v[j] / fmax(sizes[s], 1);
          CHECK(fabs(got - want) <= 1e-11 * clip, "clip %g size %g: %g of %g", clip, sizes[s], got,
                want);
        }
        free(totals);
      }
    }
  }
}

/* ---- the short way --------------------------------------------------------------------------- */

enum { MOST_FLOATS = 33 };

/* Adds a row to `fast` as the bytes of a blob. Adds the same row to `slow` as vector_text_read()
** reads it. If any number is not finite, vector_text_read() reads zeros. */
static void add_floats(struct vector_sum *fast, struct vector_sum *slow, const float *v, int size,
                       int *shorts) {
  static unsigned char bytes[4 * LAYOUT_MAX_SIZE + 1];
  double *numbers = malloc(sizeof *numbers * (size_t)size);
  int finite = 1;
  for (int j = 0; j < size; j++) {
    uint32_t bits;
    memcpy(&bits, &v[j], sizeof bits);
    for (int k = 0; k < 4; k++)
      bytes[1 + 4 * j + k] = (unsigned char)(bits >> 8 * k); /* the address is not aligned */
    finite &= isfinite(v[j]) != 0;
  }
  for (int j = 0; j < size; j++) numbers[j] = finite ? v[j] : 0;
  int taken = vector_sum_add_floats(fast, identity_integer(1), bytes + 1);
  CHECK(!taken || finite, "what is not finite is no vector");
  if (!taken) CHECK(vector_sum_add_vector(fast, identity_integer(1), numbers), "fast");
  CHECK(vector_sum_add_vector(slow, identity_integer(1), numbers), "slow");
  *shorts += taken;
  free(numbers);
}

/* Makes a row. Most rows are ordinary. Other rows contain everything that a blob may contain, with
** sizes around 2^53 steps and around the clip. */
static void odd_floats(float *v, int size, double clip) {
  static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, -0.0f, 0};
  static const double sizes[] = {0.5, 1, 1, 2, 4, 1e-9, 1e9, 1e30};
  int kind = below(6);
  double length = clip * sizes[below(8)], norm = 0;
  double *w = malloc(sizeof *w * (size_t)size);
  for (int j = 0; j < size; j++) norm += pow(w[j] = kind ? 2 * uniform() - 1 : j == size / 2, 2);
  for (int j = 0; j < size; j++) {
    double x = w[j] * length / sqrt(norm);
    v[j] = (float)fmax(fmin(x, FLT_MAX), -FLT_MAX);
  }
  float other = odd[below(8)];
  for (int j = below(size), end = below(2) ? j + 1 : size; kind == 5 && j < end; j++) v[j] = other;
  if (kind == 4 && below(4) == 0) {
    for (int j = 0; j < size; j++) {
      uint32_t bits = (uint32_t)random_bits();
      memcpy(&v[j], &bits, sizeof bits);
    }
  }
  free(w);
}

static void check_short_way(const struct contribution *question, int by_unit, const float *rows,
                            int count) {
  struct release release = release_of(question, by_unit, 0);
  struct vector_sum *fast = vectors_start(&release), *slow = vectors_start(&release);
  int shorts = 0, size = question->size;
  for (int i = 0; i < count; i++) {
    add_floats(fast, slow, &rows[(size_t)i * (size_t)size], size, &shorts);
    if (i % 3000 && i != count - 1) continue; /* compute the totals in between too */
    int128 *got = totals_now(&release, fast, 0), *want = totals_now(&release, slow, 0);
    CHECK(wrong_totals(&release, got, want, 0) == 0, "family %d clip %.17g size %d: after %d rows",
          (int)number_of(question->family), question->clip, size, i + 1);
    free(got);
    free(want);
  }
  int is_mean = question->family == &family_vector_mean;
  CHECK(by_unit && is_mean ? shorts == 0 : count < 100 || shorts > 0, "%d of %d rows are short",
        shorts, count);
  vector_sum_close(fast);
  vector_sum_close(slow);
}

static void floats_the_short_way(void) {
  enum { ROWS = 1500 };
  static const double clips[] = {1, 7.7, 240, 1e-30, 1e30, 1e-150, 1e150, 1e-40, 1e38};
  static float rows[ROWS * MOST_FLOATS];
  for (int run = 0; run < 120; run++) {
    struct contribution question = {.family = run & 1 ? &family_vector : &family_vector_mean};
    question.clip = clips[run / 2 % 9];
    question.size = 1 + below(MOST_FLOATS);
    for (int i = 0; i < ROWS; i++)
      odd_floats(&rows[i * question.size], question.size, question.clip);
    check_short_way(&question, run % 7 == 0, rows, ROWS);
  }
  struct contribution widest = {.family = &family_vector, .clip = 1, .size = LAYOUT_MAX_SIZE};
  float *wide = malloc(sizeof *wide * 4 * LAYOUT_MAX_SIZE);
  for (int i = 0; i < 4; i++) odd_floats(&wide[i * LAYOUT_MAX_SIZE], LAYOUT_MAX_SIZE, 1);
  check_short_way(&widest, 0, wide, 4);
  free(wide);
}

/* The norms of the rows are within a few units in the last place of the clip, or of the slightly
** smaller limit for averages of vectors. */
static void floats_next_to_the_clip(void) {
  for (int run = 0; run < 20000; run++) {
    struct contribution question = {.family = run & 1 ? &family_vector : &family_vector_mean};
    question.size = 1 + below(run % 3 ? 4 : MOST_FLOATS);
    float v[MOST_FLOATS];
    long double norm = 0;
    for (int j = 0; j < question.size; j++) {
      v[j] = (float)(2 * uniform() - 1);
      norm += (long double)v[j] * (long double)v[j];
    }
    double away = ldexp(below(17) - 8, run % 4 < 2 ? -53 : -41);
    question.clip = (double)(sqrtl(norm) * (1 + (long double)away));
    check_short_way(&question, 0, v, 1);
  }
}

/* All rows have the largest length and the same direction. No intermediate sum overflows. */
static void long_floats_add_up(void) {
  enum { ROWS = 5000 };
  static float rows[ROWS];
  struct contribution question = {.family = &family_vector, .clip = 2 - 0x1p-23, .size = 1};
  for (int sign = -1; sign <= 1; sign += 2) {
    for (int i = 0; i < ROWS; i++) rows[i] = (float)(sign * question.clip);
    check_short_way(&question, 0, rows, ROWS);
  }
}

/* The totals in a shard state may saturate. The result then depends on which rows were added before
** these totals. */
static void short_rows_before_totals(void) {
  struct contribution question = {.family = &family_vector, .clip = 4, .size = 2};
  struct release release = release_of(&question, 0, 0);
  struct vector_sum *fast = vectors_start(&release), *slow = vectors_start(&release);
  const int128 huge[2] = {(int128)1 << 125, -((int128)1 << 125)};
  const float v[2] = {1, -2};
  int shorts = 0;
  add_floats(fast, slow, v, 2, &shorts);
  CHECK(shorts == 1, "a row within the clip is short");
  CHECK(vector_sum_add_totals(fast, 0, huge) && vector_sum_add_totals(slow, 0, huge), "totals");
  add_floats(fast, slow, v, 2, &shorts);
  int128 *got = totals_now(&release, fast, 0), *want = totals_now(&release, slow, 0);
  CHECK(wrong_totals(&release, got, want, 0) == 0, "saturated totals and short rows");
  free(got);
  free(want);
  vector_sum_close(fast);
  vector_sum_close(slow);
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* Tables grow through several sizes, and every unit keeps its sums in every cell. */
static void many_units_with_many_keys(void) {
  enum { UNITS = 15000, KEYS = 7 };
  struct row *rows = malloc(sizeof *rows * 2 * UNITS * KEYS);
  for (int is_private = 0; is_private < 2; is_private++) {
    struct contribution question = {.family = &family_key_sum, .clip = 1 << 20, .max_groups = KEYS};
    question.keys = is_private ? KEYS_PRIVATE : KEYS;
    struct release release = release_of(&question, 1, 0);
    int128 want[KEYS] = {0}, components = release.shape.components;
    int count = 0;
    for (int i = 0; i < 2 * UNITS; i++) {
      for (int key = 0; key < KEYS; key++) {
        int unit = i % UNITS;
        struct row row = {.who = (enum who)(1 + unit % 4), .unit = unit, .key = key};
        if (row.who == WHO_REAL) row.unit += 0.5;
        row.x = (double)below(1000) / 64 - 5;
        want[key] += steps_of(row.x, release.shape.scale);
        rows[count++] = row;
      }
    }
    shuffle(rows, count);
    int128 *totals = totals_of(&release, rows, count, KEYS);
    for (int key = 0; key < KEYS; key++) {
      CHECK(totals[(key + 1) * components - 1] == want[key], "private %d key %d", is_private, key);
      if (is_private) /* the counts of each unit have norm 1 */
        CHECK_CLOSE((double)totals[key * components] / (double)release.shape.count_steps,
                    UNITS / sqrt(KEYS), 1e-11);
    }
    free(totals);
  }
  free(rows);
}

/* One unit has rows in thousands of cells, and one key has rows of thousands of units. */
static void one_unit_with_many_keys(void) {
  enum { KEYS = 9000 };
  struct row *rows = malloc(sizeof *rows * KEYS);
  struct contribution question = {.family = &family_key_count, .clip = KEYS, .keys = KEYS};
  struct release release = release_of(&question, 1, 0);
  for (int i = 0; i < KEYS; i++) rows[i] = (struct row){.who = WHO_TEXT, .unit = 1, .key = i};
  shuffle(rows, KEYS);
  int128 *totals = totals_of(&release, rows, KEYS, KEYS);
  int wrong = 0;
  for (int i = 0; i < KEYS; i++) wrong += totals[i] != release.shape.count_steps;
  CHECK(!wrong, "public: %d of %d", wrong, KEYS);
  free(totals);
  question.keys = KEYS_PRIVATE;
  question.max_groups = LAYOUT_MAX_GROUPS;
  release = release_of(&question, 1, 0);
  totals = totals_of(&release, rows, KEYS, KEYS);
  int kept = 0;
  for (int i = 0; i < KEYS; i++) kept += totals[i] != 0;
  CHECK(kept == LAYOUT_MAX_GROUPS, "private: %d", kept);
  free(totals);
  free(rows);
}

/* The leaves are larger than sums of rows can be, but a state may contain them. They are scaled
** down to one row together, with their sign, and so are the nodes above them. */
static void huge_leaves_are_scaled(void) {
  static const int128 huge[] = {(int128)3 << 123, (int128)1 << 125, -((int128)1 << 125)};
  struct contribution question = {
      .family = &family_tree, .clip = 1, .low = 0, .high = 1, .size = 16};
  struct release release = release_of(&question, 1, 0);
  for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
    struct vector_sum *vectors = vectors_start(&release);
    for (int leaf = 0; leaf < 16; leaf++)
      CHECK(vector_sum_add_record(vectors, identity_integer(7), (uint32_t)leaf, &huge[i]),
            "leaf %d", leaf);
    int128 want[30], *totals = totals_now(&release, vectors, 0);
    int128 leaf = (int128)release.shape.scale / (huge[i] < 0 ? -16 : 16);
    for (int node = 29; node >= 0; node--)
      want[node] = node < 14 ? want[2 * node + 2] + want[2 * node + 3] : leaf;
    clip_vector(&release.shape, want, 30, 1);
    CHECK(wrong_totals(&release, totals, want, 0) == 0, "leaves of %g", (double)huge[i]);
    free(totals);
    vector_sum_close(vectors);
  }
}

/* ---- asking again ---------------------------------------------------------------------------- */

static void totals_are_not_consumed(void) {
  for (int flags = 0; flags < 4; flags++) {
    int by_unit = flags & 1, is_private = flags >> 1;
    struct contribution question = {
        .family = &family_key_count, .clip = 3, .keys = is_private ? KEYS_PRIVATE : 5};
    question.max_groups = is_private ? 5 : 0;
    struct release release = release_of(&question, by_unit, 0);
    struct row rows[40];
    for (int i = 0; i < 40; i++)
      rows[i] = (struct row){.who = WHO_INTEGER, .unit = i % 7, .key = i % 4};
    struct vector_sum *vectors = vectors_start(&release);
    for (int i = 0; i < 40; i++) {
      CHECK(vectors_add(&release, vectors, &rows[i]), "row %d", i);
      int128 *first = totals_now(&release, vectors, 5), *again = totals_now(&release, vectors, 5);
      int128 *want = reference(&release, rows, i + 1, 5);
      CHECK(wrong_totals(&release, first, want, 5) == 0, "case %d after %d rows", flags, i + 1);
      CHECK(wrong_totals(&release, again, want, 5) == 0, "case %d after %d rows, again", flags,
            i + 1);
      free(first);
      free(again);
      free(want);
    }
    vector_sum_close(vectors);
  }
}

/* If a new row gives a unit a key that comes earlier in its order, the unit drops a later key. If
** no other unit has this later key, the key is no longer a coordinate. */
static void private_keys_are_chosen_again(void) {
  struct contribution question = {.family = &family_key_count, .clip = 3, .keys = KEYS_PRIVATE};
  question.max_groups = 1;
  struct release release = release_of(&question, 1, 0);
  int changed = 0;
  for (int run = 0; run < 100; run++) {
    entropy_seed = random_bits();
    struct vector_sum *vectors = vectors_start(&release);
    int last = 0;
    for (int key = 0; key < 5; key++) {
      struct row row = {.who = WHO_INTEGER, .unit = 7, .key = key};
      CHECK(vectors_add(&release, vectors, &row), "row %d", key);
      int cells = 0;
      const char **names = 0;
      int128 *totals = vector_sum_totals(vectors, &cells, &names);
      CHECK(totals && cells == 1, "run %d: %d keys of one", run, cells);
      changed += atoi(names[0]) != last;
      last = atoi(names[0]);
      free(totals);
      free(names);
    }
    vector_sum_close(vectors);
  }
  CHECK(changed > 50, "changed %d times", changed);
}

/* Without a secret, an attacker could choose units and keys whose hashes collide. Opening a vector
** therefore fails if the system provides no random bytes. */
static void no_random_bytes(void) {
  for (int family = MEAN; family <= KEY_MEAN; family++) {
    struct contribution question = random_question((enum number)family, 0, family >= KEY_COUNT);
    struct release release = release_of(&question, 1, 0);
    entropy_fails = 1;
    CHECK(!vectors_start(&release), "family %d", family);
    entropy_fails = 0;
  }
  vector_sum_close(0);
}

/* ---- private keys ---------------------------------------------------------------------------- */

enum { HELD = 8, KEPT = 3 };

static struct release keeping(int max_groups) {
  struct contribution question = {.family = &family_key_count, .clip = 1e4, .keys = KEYS_PRIVATE};
  question.max_groups = max_groups;
  return release_of(&question, 1, 0);
}

/* Returns a set of bits that shows which of the first HELD keys have rows in the totals. */
static unsigned kept_keys(const struct release *release, const struct row *rows, int count) {
  int128 *totals = totals_of(release, rows, count, KEY_END);
  unsigned kept = 0;
  for (int i = 0; i < HELD; i++) kept |= (unsigned)(totals[i] != 0) << i;
  free(totals);
  return kept;
}

static int bits_of(unsigned set) {
  return set ? (int)(set & 1) + bits_of(set >> 1) : 0;
}

/* Every key is kept as often as any other, and the choice for one unit reveals nothing about the
** choice for another unit. */
static void private_keys_are_chosen_at_random(void) {
  enum { RUNS = 4000 };
  struct release release = keeping(KEPT);
  int chosen[HELD] = {0}, alike = 0;
  struct row rows[2][HELD];
  for (int i = 0; i < HELD; i++) {
    rows[0][i] = (struct row){.who = WHO_INTEGER, .unit = 1, .key = i};
    rows[1][i] = (struct row){.who = WHO_INTEGER, .unit = 2, .key = i};
  }
  for (int run = 0; run < RUNS; run++) {
    entropy_seed = random_bits();
    unsigned one = kept_keys(&release, rows[0], HELD), two = kept_keys(&release, rows[1], HELD);
    CHECK(bits_of(one) == KEPT && bits_of(two) == KEPT, "%x and %x", one, two);
    for (int i = 0; i < HELD; i++) chosen[i] += (one & 1u << i) != 0;
    alike += one == two;
  }
  double part = (double)KEPT / HELD, error = sqrt(part * (1 - part) * RUNS);
  for (int i = 0; i < HELD; i++)
    CHECK(fabs(chosen[i] - part * RUNS) <= 6 * error, "key %d: %d times", i, chosen[i]);
  double chance = RUNS / 56.0; /* 56 sets of 3 out of 8 keys */
  CHECK(fabs(alike - chance) <= 6 * sqrt(chance), "%d of %d pairs are alike", alike, RUNS);
}

/* With one secret, the choice depends only on the unit and its keys. The choice does not depend on
** the order, the number or the values of the unit's rows, or on the rows of other units. */
static void private_keys_do_not_depend_on_the_rest(void) {
  struct release release = keeping(KEPT);
  for (int run = 0; run < 300; run++) {
    struct row rows[HELD + 300];
    entropy_seed = random_bits();
    for (int i = 0; i < HELD; i++)
      rows[i] = (struct row){.who = (enum who)(run % 5), .unit = 5, .key = i};
    unsigned alone = kept_keys(&release, rows, HELD);
    for (int i = 0; i < 5; i++) {
      shuffle(rows, HELD);
      CHECK(kept_keys(&release, rows, HELD) == alone, "run %d: the order matters", run);
    }
    int count = HELD;
    for (; count < HELD + 150; count++) rows[count] = rows[below(HELD)];
    for (int others = count; count < others + 150; count++)
      rows[count] =
          (struct row){.who = WHO_INTEGER, .unit = 100 + below(40), .key = HELD + below(1000)};
    shuffle(rows, count);
    CHECK(kept_keys(&release, rows, count) == alone, "run %d: the rest matters", run);
  }
}

/* Private keys have an order for each unit. With a smaller max_groups, a unit keeps fewer keys,
** from the start of the same order. */
static void private_keys_come_in_an_order(void) {
  for (int run = 0; run < 200; run++) {
    struct row rows[HELD];
    unsigned larger = 0;
    entropy_seed = random_bits();
    for (int i = 0; i < HELD; i++) rows[i] = (struct row){.who = WHO_TEXT, .unit = 5, .key = i};
    for (int most = HELD; most >= 1; most--) {
      struct release release = keeping(most);
      unsigned kept = kept_keys(&release, rows, HELD);
      CHECK(bits_of(kept) == most, "run %d: %d of %d", run, bits_of(kept), most);
      CHECK(most == HELD || !(kept & ~larger), "run %d: %x is not in %x", run, kept, larger);
      larger = kept;
    }
  }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void keys_that_look_alike_are_one(void) {
  struct secret secret;
  CHECK(secret_draw(&secret), "secret");
  struct group_keys *cells = group_keys_open(&secret, 0, 0, 1);
  struct identity five = identity_integer(5), text = identity_bytes(&secret, "5", 1, 1);
  struct identity blob = identity_bytes(&secret, "5", 1, 0);
  CHECK(group_keys_find(cells, five) == CELL_NEW && group_keys_count(cells) == 0, "nothing yet");
  int cell = group_keys_name(cells, five, "5");
  CHECK(cell == 0 && group_keys_count(cells) == 1 && !strcmp(group_keys_text(cells, 0), "5"),
        "named");
  CHECK(group_keys_find(cells, five) == 0 && group_keys_find(cells, identity_real(5.0)) == 0,
        "5 and 5.0");
  CHECK(group_keys_find(cells, text) == CELL_NEW && group_keys_name(cells, text, "5") == 0, "'5'");
  CHECK(group_keys_find(cells, blob) == CELL_NEW && group_keys_name(cells, blob, "x'35'") == 1,
        "x'35'");
  CHECK(group_keys_name(cells, identity_null(), "null") == 2, "null");
  CHECK(group_keys_name(cells, identity_bytes(&secret, "null", 4, 1), "null") == 2, "'null'");
  CHECK(group_keys_name(cells, identity_bytes(&secret, "", 0, 1), "") == 3, "''");
  CHECK(group_keys_name(cells, text, "5") == 0 && group_keys_count(cells) == 4, "again");
  for (int i = 0; i < 2; i++)
    CHECK(group_keys_name(cells, identity_null(), "null") == 2 &&
              group_keys_find(cells, identity_null()) == 2,
          "again null");
  CHECK(group_keys_name(cells, identity_name(&secret, "null"), "null") == 2, "by its name");
  CHECK(group_keys_find(cells, identity_name(&secret, "null")) == 2, "by its name again");
  CHECK(group_keys_hash(cells, 0) != group_keys_hash(cells, 1), "hashes");
  group_keys_close(cells);
}

static void public_keys_are_all_there_are(void) {
  struct secret secret;
  CHECK(secret_draw(&secret), "secret");
  char a[] = "a", b[] = "b", *keys[] = {a, b};
  struct group_keys *cells = group_keys_open(&secret, keys, 2, 0);
  struct identity c = identity_bytes(&secret, "c", 1, 1);
  struct identity text = identity_bytes(&secret, "b", 1, 1);
  CHECK(group_keys_find(cells, text) == CELL_NEW && group_keys_name(cells, text, "b") == 1, "b");
  CHECK(group_keys_name(cells, c, "c") == CELL_NONE && group_keys_name(cells, c, "c") == CELL_NONE,
        "c");
  CHECK(group_keys_name(cells, identity_integer(1), "b") == 1, "another that looks like b");
  CHECK(group_keys_find(cells, identity_integer(1)) == 1 && group_keys_count(cells) == 2,
        "remembered");
  group_keys_close(cells);
  group_keys_close(0);
}

/* Integers on both sides of the limit of the array, and an integer whose name is no public key. */
static void integers_find_their_cells(void) {
  struct secret secret;
  CHECK(secret_draw(&secret), "secret");
  static const int64_t values[] = {0, 1, 4095, 4096, -1, INT64_MIN, INT64_MAX};
  enum { COUNT = sizeof values / sizeof *values };
  char texts[COUNT][24], *keys[COUNT];
  for (int i = 0; i < COUNT; i++) {
    snprintf(texts[i], sizeof texts[i], "%" PRId64, values[i]);
    keys[i] = texts[i];
  }
  struct group_keys *cells = group_keys_open(&secret, keys, COUNT - 1, 0);
  for (int again = 0; again < 2; again++) {
    for (int i = 0; i < COUNT - 1; i++) {
      struct identity key = identity_integer(values[i]);
      CHECK(group_keys_find(cells, key) == (again ? i : CELL_NEW), "%s", texts[i]);
      CHECK(group_keys_name(cells, key, texts[i]) == i, "%s", texts[i]);
    }
    CHECK(group_keys_name(cells, identity_integer(7), "7") == CELL_NONE, "not public");
    CHECK(group_keys_find(cells, identity_integer(7)) == CELL_NONE, "not public, again");
    CHECK(group_keys_name(cells, identity_integer(INT64_MAX), texts[COUNT - 1]) == CELL_NONE,
          "large and not public");
  }
  group_keys_close(cells);
}

/* Private keys are sorted by their bytes, with their totals, whatever the order of rows. */
static void private_keys_come_sorted(void) {
  enum { KEYS = 5000 };
  struct contribution question = {.family = &family_key_mean, .clip = 1e6, .low = 0, .high = 1};
  question.keys = KEYS_PRIVATE;
  question.max_groups = 10;
  struct release release = release_of(&question, 1, 0);
  struct vector_sum *vectors = vectors_start(&release);
  struct row *rows = malloc(sizeof *rows * 2 * KEYS);
  for (int i = 0; i < 2 * KEYS; i++)
    rows[i] =
        (struct row){.who = WHO_INTEGER, .unit = i, .key = 2 * (i % KEYS) % KEY_END, .x = 0.75};
  for (int i = 0; i < 2 * KEYS; i++) rows[i].x = rows[i].key % 4 ? 0.75 : 0.25;
  shuffle(rows, 2 * KEYS);
  for (int i = 0; i < 2 * KEYS; i++) CHECK(vectors_add(&release, vectors, &rows[i]), "row %d", i);
  const char **keys = 0;
  int cells = 0, wrong = 0;
  int128 *totals = vector_sum_totals(vectors, &cells, &keys),
         half = steps_of(0.5, release.shape.scale);
  CHECK(totals && cells == KEYS, "%d cells", cells);
  for (int i = 0; i < cells; i++) {
    char name[KEY_SIZE];
    key_name(name, 2 * i);
    wrong += strcmp(keys[i], name) != 0;
    wrong += totals[2 * i] != 2 * (int128)release.shape.count_steps;
    wrong += totals[2 * i + 1] != (i % 2 ? 2 : -2) * half;
  }
  CHECK(!wrong, "%d of %d keys", wrong, cells);
  free(totals);
  free(keys);
  free(rows);
  vector_sum_close(vectors);
}

int main(void) {
  RUN(like_the_reference);
  RUN(rows_of_vector_means_fit_their_clip);
  RUN(floats_the_short_way);
  RUN(floats_next_to_the_clip);
  RUN(long_floats_add_up);
  RUN(short_rows_before_totals);
  RUN(many_units_with_many_keys);
  RUN(one_unit_with_many_keys);
  RUN(huge_leaves_are_scaled);
  RUN(totals_are_not_consumed);
  RUN(private_keys_are_chosen_again);
  RUN(no_random_bytes);
  RUN(private_keys_are_chosen_at_random);
  RUN(private_keys_do_not_depend_on_the_rest);
  RUN(private_keys_come_in_an_order);
  RUN(keys_that_look_alike_are_one);
  RUN(public_keys_are_all_there_are);
  RUN(integers_find_their_cells);
  RUN(private_keys_come_sorted);
  FINISH();
}
