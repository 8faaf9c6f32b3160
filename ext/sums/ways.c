/* ways.c: see ways.h. Tests: tests/mechanism/test_cross_tables.py */
#include "sums/ways.h"

#include <stdlib.h>
#include <string.h>

/* ---- making a programme ---------------------------------------------------------------------- */

static int bits_of(unsigned mask) {
  int bits = 0;
  for (; mask; mask &= mask - 1) bits++;
  return bits;
}

/* Returns the number of cells of a table, as a double, which cannot overflow. */
static double cells_of(const struct ways *ways, unsigned mask) {
  double cells = 1;
  for (int i = 0; i < ways->attributes; i++)
    if (mask >> i & 1) cells *= ways->sizes[i];
  return cells;
}

static int by_size(const void *a, const void *b) {
  unsigned x = ((const struct cross_table *)a)->mask, y = ((const struct cross_table *)b)->mask;
  int more = bits_of(x) - bits_of(y);
  return more ? more : (x > y) - (x < y);
}

/* Marks a table and all tables inside it. Returns the number of tables that were not marked. */
static int mark(struct ways *ways, unsigned mask) {
  int added = 0;
  for (unsigned inside = mask;; inside = (inside - 1) & mask) {
    added += ways->index[inside] == WAYS_NONE;
    ways->index[inside] = 0;
    if (inside == 0) return added;
  }
}

/* Lists the marked tables in their order, and numbers their cells. */
static enum ways_limit list(struct ways *ways, double *cells) {
  ways->tables = calloc((size_t)ways->count, sizeof *ways->tables);
  if (!ways->tables) return WAYS_NO_MEMORY;
  int used = 0;
  for (unsigned mask = 0; mask < 1u << ways->attributes; mask++) {
    if (ways->index[mask] == WAYS_NONE) continue;
    ways->tables[used++] = (struct cross_table){.mask = mask, .weight = 1};
    *cells += cells_of(ways, mask);
  }
  if (*cells > WAYS_MAX_CELLS) return WAYS_MANY_CELLS;
  qsort(ways->tables, (size_t)used, sizeof *ways->tables, by_size);
  for (int i = 0; i < used; i++) {
    struct cross_table *table = &ways->tables[i];
    ways->index[table->mask] = (int16_t)i;
    table->cells = (int)cells_of(ways, table->mask);
    table->first = ways->cells;
    table->first_coordinate = WAYS_NONE;
    ways->cells += table->cells;
  }
  return WAYS_FIT;
}

static enum ways_limit make(struct ways *ways, const unsigned *masks, const double *weights,
                            int count, double *cells) {
  size_t masks_count = (size_t)1 << ways->attributes;
  if (cells_of(ways, (unsigned)masks_count - 1) >= (double)WAYS_MAX_FULL) return WAYS_MANY_KEYS;
  ways->index = malloc(sizeof *ways->index * masks_count);
  if (!ways->index) return WAYS_NO_MEMORY;
  memset(ways->index, 0xff, sizeof *ways->index * masks_count); /* WAYS_NONE */
  for (int i = 0; i < count; i++) ways->count += mark(ways, masks[i]);
  if (ways->count > WAYS_MAX_TABLES) {
    for (unsigned mask = 0; mask < masks_count; mask++)
      if (ways->index[mask] != WAYS_NONE) *cells += cells_of(ways, mask);
    return *cells > WAYS_MAX_CELLS ? WAYS_MANY_CELLS : WAYS_MANY_TABLES;
  }
  enum ways_limit limit = list(ways, cells);
  for (int i = 0; i < count && limit == WAYS_FIT; i++)
    ways->tables[ways->index[masks[i]]].weight = weights[i];
  return limit;
}

enum ways_limit ways_open(struct ways *ways, int attributes, const int *sizes,
                          const unsigned *masks, const double *weights, int count, double *cells) {
  *ways = (struct ways){.attributes = attributes};
  *cells = 0;
  memcpy(ways->sizes, sizes, sizeof *sizes * (size_t)attributes);
  for (int i = 0; i < attributes; i++)
    ways->inverses[i] = UINT64_MAX / (uint64_t)sizes[i] + 1; /* not used for a size of 1 */
  enum ways_limit limit = make(ways, masks, weights, count, cells);
  if (limit != WAYS_FIT) ways_close(ways);
  return limit;
}

void ways_close(struct ways *ways) {
  free(ways->tables);
  free(ways->index);
  *ways = (struct ways){0};
}

int ways_copy(struct ways *to, const struct ways *from) {
  size_t tables = sizeof *from->tables * (size_t)from->count;
  size_t index = sizeof *from->index << from->attributes;
  *to = *from;
  to->tables = malloc(tables);
  to->index = malloc(index);
  if (to->tables && to->index) {
    memcpy(to->tables, from->tables, tables);
    memcpy(to->index, from->index, index);
    return 1;
  }
  ways_close(to);
  return 0;
}

/* ---- measured tables ------------------------------------------------------------------------- */

#define MOST_SQUARE     ((int64_t)1 << 30)
#define MOST_MULTIPLIER (1 << 15)

int ways_is_largest(const struct ways *ways, const struct cross_table *table) {
  for (int i = 0; i < ways->attributes; i++)
    if (!(table->mask >> i & 1) && ways_find(ways, table->mask | 1u << i)) return 0;
  return 1;
}

int ways_measure(struct ways *ways, const int *multipliers) {
  int64_t coordinates = 0;
  for (int i = 0; i < ways->count; i++) {
    struct cross_table *table = &ways->tables[i];
    int multiplier = multipliers[i];
    if (multiplier < 0 || multiplier > MOST_MULTIPLIER) return 0;
    if (multiplier == 0 && ways_is_largest(ways, table)) return 0;
    table->multiplier = multiplier;
    table->first_coordinate = multiplier ? (int)coordinates : WAYS_NONE;
    coordinates += multiplier ? table->cells : 0;
  }
  ways->coordinates = (int)coordinates;
  return coordinates <= WAYS_MAX_MEASURED && ways_square(ways) <= MOST_SQUARE;
}

int64_t ways_square(const struct ways *ways) {
  int64_t sum = 0;
  for (int i = 0; i < ways->count; i++)
    sum += (int64_t)ways->tables[i].multiplier * ways->tables[i].multiplier;
  return sum;
}

int64_t ways_sum(const struct ways *ways) {
  int64_t sum = 0;
  for (int i = 0; i < ways->count; i++) sum += ways->tables[i].multiplier;
  return sum;
}

/* ---- cells ----------------------------------------------------------------------------------- */

const struct cross_table *ways_find(const struct ways *ways, unsigned mask) {
  int found = mask >> ways->attributes ? WAYS_NONE : ways->index[mask];
  return found == WAYS_NONE ? 0 : &ways->tables[found];
}

int64_t ways_full(const struct ways *ways) {
  int64_t cells = 1;
  for (int i = 0; i < ways->attributes; i++) cells *= ways->sizes[i];
  return cells;
}

/* Returns cell / sizes[i], without a division if the cell is below 2^32: the inverse is less than 1
** too large, so the product is less than 2^32 / 2^64 too large, and a quotient is at least 1 / size
** below the next whole number. */
static uint64_t divide(const struct ways *ways, uint64_t cell, int i) {
  if (cell >> 32 || ways->sizes[i] == 1) return cell / (uint64_t)ways->sizes[i];
  return (uint64_t)((unsigned __int128)cell * ways->inverses[i] >> 64);
}

void ways_full_keys(const struct ways *ways, int64_t cell, int *keys) {
  uint64_t rest = (uint64_t)cell;
  for (int i = ways->attributes - 1; i >= 0; i--) {
    uint64_t quotient = divide(ways, rest, i);
    keys[i] = (int)(rest - quotient * (uint64_t)ways->sizes[i]);
    rest = quotient;
  }
}

void ways_next(const struct ways *ways, int *keys) {
  for (int i = ways->attributes - 1; i >= 0; i--) {
    if (++keys[i] < ways->sizes[i]) return;
    keys[i] = 0;
  }
}

int ways_cell(const struct ways *ways, const struct cross_table *table, const int *keys) {
  int cell = 0;
  for (unsigned rest = table->mask; rest; rest &= rest - 1) {
    int i = __builtin_ctz(rest);
    cell = cell * ways->sizes[i] + keys[i];
  }
  return cell;
}

void ways_keys(const struct ways *ways, const struct cross_table *table, int cell, int *keys) {
  for (int i = ways->attributes - 1; i >= 0; i--) {
    if (!(table->mask >> i & 1)) continue;
    keys[i] = cell % ways->sizes[i];
    cell /= ways->sizes[i];
  }
}
