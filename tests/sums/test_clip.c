/* test_clip.c: checks the clipping of layout.c with integers of 320 bits, which can hold the sum of
** squares of any vector. Every test runs for the Euclidean norm and for the sum norm.
**
** Requirements: the exact norm of every block is at most the reach of the block, and the exact norm
** of the block's leading part is at most the reach of this part. A vector that fits is not changed.
** No component grows or changes its sign. The direction stays the same up to truncation. The order
** of the values does not matter. */
#include "check.h"
#include "random.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sums/layout.h"

/* ---- sums of squares ------------------------------------------------------------------------- */

struct wide {
  uint64_t words[5]; /* the least significant word first */
};

static void add_at(struct wide *sum, int place, uint128 value) {
  for (; value; place++) {
    value += sum->words[place];
    sum->words[place] = (uint64_t)value;
    value >>= 64;
  }
}

static int is_l1; /* 1: the tests use the sum norm; 0: the Euclidean norm */

/* Adds the square of a number, or in the sum norm its magnitude. */
static void add_part(struct wide *sum, int128 x) {
  uint128 size = x < 0 ? -(uint128)x : (uint128)x;
  uint64_t low = (uint64_t)size, high = (uint64_t)(size >> 64);
  if (is_l1) {
    add_at(sum, 0, low);
    add_at(sum, 1, high);
    return;
  }
  add_at(sum, 0, (uint128)low * low);
  add_at(sum, 1, (uint128)low * high);
  add_at(sum, 1, (uint128)low * high);
  add_at(sum, 2, (uint128)high * high);
}

/* ---- matrices -------------------------------------------------------------------------------- */

struct matrix {
  int128 *values;
  size_t cells;
  int components;
};

static struct matrix matrix_of(size_t cells, int components) {
  struct matrix matrix = {calloc(cells * (size_t)components, sizeof(int128)), cells, components};
  return matrix;
}

static size_t size_of(const struct matrix *matrix) {
  return matrix->cells * (size_t)matrix->components;
}

static struct matrix copy_of(const struct matrix *matrix) {
  struct matrix copy = matrix_of(matrix->cells, matrix->components);
  memcpy(copy.values, matrix->values, size_of(matrix) * sizeof(int128));
  return copy;
}

static int same(const struct matrix *a, const struct matrix *b) {
  return memcmp(a->values, b->values, size_of(a) * sizeof(int128)) == 0;
}

static int128 at(const struct matrix *matrix, size_t cell, int component) {
  return matrix->values[cell * (size_t)matrix->components + (size_t)component];
}

/* Returns whether the norm of components [first, end) of all cells is at most reach. */
static int norm_fits(const struct matrix *matrix, int first, int end, int64_t reach) {
  struct wide sum = {{0, 0, 0, 0, 0}};
  for (size_t i = 0; i < matrix->cells; i++) {
    for (int j = first; j < end; j++) add_part(&sum, at(matrix, i, j));
  }
  uint128 limit = is_l1 ? (uint128)reach : (uint128)reach * (uint128)reach;
  uint128 low = (uint128)sum.words[1] << 64 | sum.words[0];
  return !sum.words[2] && !sum.words[3] && !sum.words[4] && low <= limit;
}

static long double norm_of(const struct matrix *matrix, int first, int end) {
  long double sum = 0;
  for (size_t i = 0; i < matrix->cells; i++) {
    for (int j = first; j < end; j++) {
      long double x = (long double)at(matrix, i, j);
      sum += is_l1 ? fabsl(x) : x * x;
    }
  }
  return is_l1 ? sum : sqrtl(sum);
}

static int block_fits(const struct block *block, const struct matrix *matrix) {
  return norm_fits(matrix, block->first, block->lead_end, block->lead_reach) &&
         norm_fits(matrix, block->first, block->end, block->reach);
}

/* ---- what a clipped matrix must be ----------------------------------------------------------- */

/* The computed factor may be too small by a relative error of 2^-40. The code multiplies and
** truncates at most twice for the leading part, and at most twice more for the whole block. */
static void check_block(const struct block *block, const struct matrix *before,
                        const struct matrix *after, const char *what) {
  int fitted = block_fits(block, before);
  int leads = block->lead_end < block->end || block->lead_reach != block->reach;
  long double lead = norm_of(before, block->first, block->lead_end), factor = 1;
  if (lead > (long double)block->lead_reach) factor = (long double)block->lead_reach / lead;
  long double norm = norm_of(before, block->first, block->end) * factor;
  if (norm > (long double)block->reach) factor *= (long double)block->reach / norm;
  CHECK(block_fits(block, after), "%s: too long", what);
  int changed = 0, grown = 0, turned = 0;
  for (size_t i = 0; i < before->cells; i++) {
    for (int j = block->first; j < block->end; j++) {
      int128 x = at(before, i, j), y = at(after, i, j);
      long double ideal = (long double)x * factor, got = (long double)y;
      long double steps = fabsl(got - ideal), allowed = leads ? 4 : 2;
      changed += x != y;
      grown += x < 0 ? y < x || y > 0 : y > x || y < 0;
      turned += steps > allowed + fabsl(ideal) * (leads ? 0x1p-38L : 0x1p-39L);
    }
  }
  CHECK(!fitted || !changed, "%s: %d components of a vector that fits are changed", what, changed);
  CHECK(!grown, "%s: %d components grow or change sign", what, grown);
  CHECK(!turned, "%s: %d components are not where scaling puts them", what, turned);
}

/* Clips a matrix, checks the result, and frees the matrix. */
static void check_clip(const struct layout *shape, struct matrix matrix, const char *what) {
  struct matrix before = copy_of(&matrix);
  clip_vector(shape, matrix.values, matrix.cells, matrix.components);
  for (int i = 0; i < shape->block_count; i++)
    check_block(&shape->blocks[i], &before, &matrix, what);
  struct matrix again = copy_of(&matrix);
  clip_vector(shape, again.values, again.cells, again.components);
  CHECK(same(&again, &matrix), "%s: clipping twice is not clipping once", what);
  free(before.values);
  free(again.values);
  free(matrix.values);
}

static struct layout one_block(int components, int64_t reach) {
  struct layout shape = {.components = components, .block_count = 1, .is_l1 = is_l1};
  shape.blocks[0] = (struct block){0, components, components, reach, reach, 2};
  return shape;
}

static struct layout with_lead(int components, int lead_end, int64_t lead_reach, int64_t reach) {
  struct layout shape = one_block(components, reach);
  shape.blocks[0].lead_end = lead_end;
  shape.blocks[0].lead_reach = lead_reach;
  return shape;
}

static struct layout two_blocks(int first, int components, int64_t reach, int64_t second) {
  struct layout shape = {.components = components, .block_count = 2, .is_l1 = is_l1};
  shape.blocks[0] = (struct block){0, first, first, reach, reach, 2};
  shape.blocks[1] = (struct block){first, components, components, second, second, 2};
  return shape;
}

/* ---- values ---------------------------------------------------------------------------------- */

#define MOST (((int128)1 << 126) - 1)

/* Returns a random number of at most `bits` bits. Sometimes the function returns the largest such
** number. */
static int128 random_value(int bits) {
  uint128 wide = (uint128)random_bits() << 64 | random_bits();
  int128 size = (int128)(wide >> (128 - bits));
  if (random_bits() % 16 == 0) size = ((int128)1 << bits) - 1;
  return random_bits() & 1 ? -size : size;
}

static struct matrix random_matrix(size_t cells, int components, int bits, int is_mixed) {
  struct matrix matrix = matrix_of(cells, components);
  for (size_t i = 0; i < size_of(&matrix); i++)
    matrix.values[i] = random_value(is_mixed ? 1 + (int)(random_bits() % (unsigned)bits) : bits);
  return matrix;
}

static const int64_t reaches[] = {0,
                                  1,
                                  2,
                                  1000,
                                  ((int64_t)1 << 52) + 1,
                                  ((int64_t)1 << 53) - 1,
                                  ((int64_t)1 << 53) + 2,
                                  ((int64_t)1 << 62) - 1};
enum { REACHES = sizeof reaches / sizeof *reaches };

/* ---- tests ----------------------------------------------------------------------------------- */

static void random_matrices(void) {
  for (int run = 0; run < 2500; run++) {
    int components = 1 + (int)(random_bits() % 5), bits = 1 + (int)(random_bits() % 126);
    size_t cells = 1 + random_bits() % 40;
    int64_t reach = reaches[random_bits() % REACHES], other = reaches[random_bits() % REACHES];
    struct layout shape = one_block(components, reach);
    if (run % 3 == 1) shape = with_lead(components, 1, other, reach);
    if (run % 3 == 2 && components > 1) shape = two_blocks(1, components, reach, other);
    check_clip(&shape, random_matrix(cells, components, bits, run & 1), "random");
  }
}

/* The norm of each vector is so close to the reach that layout.c must compare both exactly. */
static void near_the_reach(void) {
  for (int run = 0; run < 2500; run++) {
    int components = 1 + (int)(random_bits() % 4);
    struct matrix matrix = random_matrix(1 + random_bits() % 30, components, 50, run & 1);
    long double norm = norm_of(&matrix, 0, components);
    int64_t reach = (int64_t)norm + (int64_t)(random_bits() % 7) - 3;
    if (run % 5 == 0) reach = (int64_t)(norm * (1 - (long double)(random_bits() % 100) * 0x1p-46L));
    struct layout shape = one_block(components, reach > 0 ? reach : 0);
    check_clip(&shape, matrix, "near");
  }
}

static void one_step_decides(void) {
  const int64_t k = ((int64_t)1 << 50) + 12345, m = ((int64_t)1 << 60) + 12345;
  const int64_t cases[][3] = {/* two numbers, and the reach */
                              {3 * k, 4 * k, 5 * k},
                              {3 * k + 1, 4 * k, 5 * k},
                              {3 * k, 4 * k, 5 * k - 1},
                              {-3 * k, 4 * k, 5 * k},
                              {5 * k, 0, 5 * k},
                              {0, -5 * k, 5 * k},
                              {5 * k, 1, 5 * k},
                              {5 * k + 1, 0, 5 * k},
                              {5 * k - 1, 1, 5 * k},
                              {m, 2 * m, 3 * m},
                              {m + 1, 2 * m, 3 * m},
                              {-m, 2 * m, 3 * m},
                              {-m - 1, -2 * m, 3 * m},
                              {3 * m, -1, 3 * m},
                              {0, -1, 0},
                              {1, 1, 2},
                              {1, 1, 1},
                              {0, 0, 0}};
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    for (size_t cells = 1; cells <= 2; cells++) { /* in one cell, or in two */
      struct matrix matrix = matrix_of(cells, 3 - (int)cells);
      struct layout shape = one_block(matrix.components, cases[i][2]);
      for (int j = 0; j < 2; j++) matrix.values[j] = cases[i][j];
      check_clip(&shape, matrix, "one step");
    }
  }
}

/* The values are random 128-bit integers. Clipping ends, and the result fits the reach. */
static void every_number_is_clipped(void) {
  const int128 least = (int128)((uint128)1 << 127);
  const int128 numbers[] = {least, least + 1, -(least + 1), (int128)1 << 126, 0, 1, -1};
  const int count = sizeof numbers / sizeof *numbers;
  const int64_t limits[] = {0, 1, (int64_t)1 << 53, ((int64_t)1 << 62) - 1};
  for (int i = 0; i < count * count * 4; i++) {
    struct layout shape = one_block(2, limits[i % 4]);
    int128 values[2] = {numbers[i / 4 % count], numbers[i / 4 / count]};
    clip_vector(&shape, values, 1, 2);
    for (int j = 0; j < 2; j++)
      CHECK(values[j] <= limits[i % 4] && values[j] >= -limits[i % 4], "case %d", i);
  }
}

static void largest_values(void) {
  for (int i = 0; i < REACHES; i++) {
    for (size_t cells = 1; cells <= 1000; cells *= 10) {
      struct matrix all = matrix_of(cells, 2), one = random_matrix(cells, 2, 20, 1);
      for (size_t j = 0; j < size_of(&all); j++) all.values[j] = j % 3 ? MOST : -MOST;
      one.values[cells] = -MOST; /* one large value among small ones */
      struct layout shape = one_block(2, reaches[i]),
                    lead = with_lead(2, 1, reaches[i], reaches[i]);
      check_clip(&lead, copy_of(&all), "all are the largest, with a lead");
      check_clip(&shape, all, "all are the largest");
      check_clip(&lead, copy_of(&one), "one is the largest, with a lead");
      check_clip(&shape, one, "one is the largest");
    }
  }
}

/* Large sizes that layout.h allows: a million coordinates, and 2^22 - 1 coordinates. */
static void many_coordinates(void) {
  const size_t million = (size_t)1 << 20;
  const int64_t reach = ((int64_t)1 << 53) - 1;
  struct layout shape = one_block(1, reach);
  for (int kind = 0; kind < 5; kind++) {
    struct matrix matrix = matrix_of(million, 1);
    for (size_t i = 0; i < million; i++) {
      /* All values are equal, and the norm of 2^53 is one step above the reach. */
      int128 x = (int128)1 << 43;
      if (kind == 1) x = ((int128)1 << 43) - 1; /* the norm is below the reach */
      if (kind == 2) x = random_value(126);
      if (kind == 3) x = i ? 1 : MOST;
      if (kind == 4) x = i % 2 ? MOST : -MOST;
      matrix.values[i] = x;
    }
    check_clip(&shape, matrix, "a million");
  }
  struct matrix most = matrix_of(4 * million - 1, 1);
  for (size_t i = 0; i < size_of(&most); i++) most.values[i] = MOST;
  clip_vector(&shape, most.values, most.cells, 1);
  CHECK(norm_fits(&most, 0, 1, reach), "too long");
  long double short_of = (long double)reach - norm_of(&most, 0, 1);
  CHECK(short_of <= 2 * (is_l1 ? 0x1p22L : 0x1p11L) + (long double)reach * 0x1p-39L, "short by %Lg",
        short_of);
  free(most.values);
}

/* A permutation of cells permutes the result. */
static void order_does_not_matter(void) {
  for (int run = 0; run < 1500; run++) {
    int components = 1 + (int)(random_bits() % 3);
    size_t cells = 2 + random_bits() % 50, size = (size_t)components;
    struct matrix a = random_matrix(cells, components, 1 + run % 126, run & 1);
    struct matrix b = matrix_of(cells, components);
    size_t *places = malloc(cells * sizeof *places);
    for (size_t i = 0; i < cells; i++) {
      size_t j = random_bits() % (i + 1);
      places[i] = i;
      places[i] = places[j];
      places[j] = i;
    }
    for (size_t i = 0; i < cells; i++)
      memcpy(&b.values[places[i] * size], &a.values[i * size], size * sizeof(int128));
    int64_t reach = ((int64_t)1 << 52) + (int64_t)(random_bits() >> 12);
    struct layout shape =
        run % 2 ? one_block(components, reach) : with_lead(components, 1, reach / 3, reach);
    clip_vector(&shape, a.values, cells, components);
    clip_vector(&shape, b.values, cells, components);
    int wrong = 0;
    for (size_t i = 0; i < cells; i++)
      wrong += memcmp(&b.values[places[i] * size], &a.values[i * size], size * sizeof(int128)) != 0;
    CHECK(!wrong, "run %d: %d cells differ", run, wrong);
    free(places);
    free(a.values);
    free(b.values);
  }
}

/* Cells of zeros change nothing, so the total number of keys does not matter. */
static void zeros_do_not_matter(void) {
  struct layout shape = with_lead(2, 1, (int64_t)1 << 51, (int64_t)1 << 52);
  for (int run = 0; run < 500; run++) {
    struct matrix few = random_matrix(20, 2, 1 + run % 126, run & 1), many = matrix_of(500, 2);
    for (size_t i = 0; i < 20; i++)
      memcpy(&many.values[i * 50], &few.values[i * 2], 2 * sizeof(int128));
    clip_vector(&shape, few.values, 20, 2);
    clip_vector(&shape, many.values, 500, 2);
    int wrong = 0;
    for (size_t i = 0; i < 20; i++)
      wrong += memcmp(&many.values[i * 50], &few.values[i * 2], 2 * sizeof(int128)) != 0;
    CHECK(!wrong, "run %d", run);
    free(few.values);
    free(many.values);
  }
}

int main(void) {
  for (is_l1 = 0; is_l1 < 2; is_l1++) {
    RUN(random_matrices);
    RUN(near_the_reach);
    RUN(one_step_decides);
    RUN(every_number_is_clipped);
    RUN(largest_values);
    RUN(many_coordinates);
    RUN(order_does_not_matter);
    RUN(zeros_do_not_matter);
  }
  FINISH();
}
