/* unit_tables.c: see unit_tables.h. Tests: tests/sql/test_cross_tables.py */
#include "sums/unit_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROUNDS 8 /* of scaling; two are normally enough (clip.c) */

/* Within these bounds the sum over pairs is below 2^127: 2^30 from W, 2^84 and 2 * 2^12 pairs. */
#define FEW   64
#define SMALL ((uint128)1 << 42)

/* A cell of the full table in which the unit has rows, and the number of its values. */
struct entry {
  int64_t cell;
  size_t at;
};

/* The cell of an entry in the table that is being added up. */
struct place {
  int cell;
  size_t at;
};

struct unit_tables {
  const struct layout *shape;
  int64_t *meets; /* W(D) for each set D of attributes */
  size_t count, room;
  struct entry *entries; /* sorted by cell */
  int *keys;             /* the keys of each entry, WAYS_MAX_ATTRIBUTES apart */
  int has_keys;          /* `keys` is set; a unit with one cell normally does not need it */
  struct place *places;  /* sorted by cell, then in the order of the entries */
  int128 *values;        /* the caller's, `components` for each entry */
  int128 *sums;          /* components of each cell of one table */
};

/* Sets W: the square of each table, then sums over the tables inside, attribute by attribute. */
static void set_meets(struct unit_tables *tables) {
  const struct ways *ways = tables->shape->ways;
  for (int a = 0; a < ways->count; a++) {
    const struct cross_table *table = &ways->tables[a];
    tables->meets[table->mask] = (int64_t)table->multiplier * table->multiplier;
  }
  for (int i = 0; i < ways->attributes; i++)
    for (unsigned mask = 0; mask < 1u << ways->attributes; mask++)
      if (mask >> i & 1) tables->meets[mask] += tables->meets[mask & ~(1u << i)];
}

struct unit_tables *unit_tables_open(const struct layout *shape) {
  struct unit_tables *tables = calloc(1, sizeof *tables);
  if (!tables) return 0;
  tables->shape = shape;
  tables->meets = calloc((size_t)1 << shape->ways->attributes, sizeof *tables->meets);
  if (tables->meets) {
    set_meets(tables);
    return tables;
  }
  unit_tables_close(tables);
  return 0;
}

void unit_tables_close(struct unit_tables *tables) {
  if (!tables) return;
  free(tables->meets);
  free(tables->entries);
  free(tables->keys);
  free(tables->places);
  free(tables->sums);
  free(tables);
}

static int reserve(struct unit_tables *tables, size_t count) {
  if (count <= tables->room) return 1;
  size_t room = count + tables->room, components = (size_t)tables->shape->components;
  struct entry *entries = realloc(tables->entries, sizeof *entries * room);
  if (entries) tables->entries = entries;
  int *keys = realloc(tables->keys, sizeof *keys * room * WAYS_MAX_ATTRIBUTES);
  if (keys) tables->keys = keys;
  struct place *places = realloc(tables->places, sizeof *places * room);
  if (places) tables->places = places;
  int128 *sums = realloc(tables->sums, sizeof *sums * room * components);
  if (sums) tables->sums = sums;
  if (!entries || !keys || !places || !sums) return 0;
  tables->room = room;
  return 1;
}

/* ---- one table ------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  return (x->cell > y->cell) - (x->cell < y->cell);
}

static int by_place(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  int more = (x->cell > y->cell) - (x->cell < y->cell);
  return more ? more : (x->at > y->at) - (x->at < y->at);
}

/* Sets the keys of all entries. */
static void set_keys(struct unit_tables *tables) {
  for (size_t i = 0; i < tables->count && !tables->has_keys; i++)
    ways_full_keys(tables->shape->ways, tables->entries[i].cell,
                   &tables->keys[i * WAYS_MAX_ATTRIBUTES]);
  tables->has_keys = 1;
}

/*
** Adds up the unit's values in the cells of one table. Afterwards places[i].cell is cell i, and
** `sums` holds its sums. Returns the number of cells. The additions saturate in the order of the
** entries. Sums of rows are far from the limit, but sums from the state of a shard can reach it.
*/
static size_t project(struct unit_tables *tables, const struct cross_table *table) {
  const struct ways *ways = tables->shape->ways;
  size_t components = (size_t)tables->shape->components, used = 0;
  set_keys(tables);
  for (size_t i = 0; i < tables->count; i++) {
    int cell = ways_cell(ways, table, &tables->keys[i * WAYS_MAX_ATTRIBUTES]);
    tables->places[i] = (struct place){cell, i};
  }
  qsort(tables->places, tables->count, sizeof *tables->places, by_place);
  for (size_t i = 0; i < tables->count; i++) {
    struct place place = tables->places[i];
    const int128 *value = &tables->values[tables->entries[place.at].at * components];
    if (i == 0 || place.cell != tables->places[used - 1].cell) {
      memcpy(&tables->sums[used * components], value, sizeof *value * components);
      tables->places[used++] = place;
      continue;
    }
    int128 *sum = &tables->sums[(used - 1) * components];
    for (size_t j = 0; j < components; j++) sum[j] = lattice_add(sum[j], value[j]);
  }
  return used;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* Returns whether the sum over pairs can be computed for the first `end` components. */
static int are_few(const struct unit_tables *tables, int end) {
  size_t components = (size_t)tables->shape->components;
  if (tables->shape->is_l1 || tables->count > FEW) return 0;
  for (size_t i = 0; i < tables->count; i++)
    for (int j = 0; j < end; j++)
      if (lattice_magnitude(tables->values[i * components + (size_t)j]) > SMALL) return 0;
  return 1;
}

/* Returns the attributes in which the cells of two entries agree. */
static unsigned agreement(struct unit_tables *tables, size_t i, size_t k) {
  set_keys(tables);
  const int *x = &tables->keys[i * WAYS_MAX_ATTRIBUTES];
  const int *y = &tables->keys[k * WAYS_MAX_ATTRIBUTES];
  unsigned mask = 0;
  for (int a = 0; a < tables->shape->ways->attributes; a++) mask |= (unsigned)(x[a] == y[a]) << a;
  return mask;
}

/* Returns |v|^2 for the first `end` components. are_few() must hold. */
static uint128 square_of_pairs(struct unit_tables *tables, int end) {
  size_t components = (size_t)tables->shape->components;
  int128 sum = 0;
  int64_t own = tables->meets[(1u << tables->shape->ways->attributes) - 1];
  for (size_t i = 0; i < tables->count; i++) {
    const int128 *x = &tables->values[tables->entries[i].at * components];
    for (int j = 0; j < end; j++) sum += x[j] * x[j] * own;
    for (size_t k = 0; k < i; k++) {
      const int128 *y = &tables->values[tables->entries[k].at * components];
      int128 product = 0;
      for (int j = 0; j < end; j++) product += x[j] * y[j];
      sum += 2 * product * tables->meets[agreement(tables, i, k)];
    }
  }
  return (uint128)sum;
}

/*
** Returns whether the first `end` components of v have a norm of at most `reach` < 2^54, exactly. A
** coordinate is compared before it is multiplied and squared, so nothing overflows.
*/
static int fits(struct unit_tables *tables, int end, int64_t reach) {
  const struct layout *shape = tables->shape;
  uint128 bound = (uint128)reach, limit = shape->is_l1 ? bound : bound * bound, sum = 0;
  if (are_few(tables, end)) return square_of_pairs(tables, end) <= limit;
  for (int a = 0; a < shape->ways->count; a++) {
    const struct cross_table *table = &shape->ways->tables[a];
    size_t cells = table->multiplier ? project(tables, table) : 0;
    uint128 multiplier = (uint128)table->multiplier;
    for (size_t i = 0; i < cells; i++) {
      for (int j = 0; j < end; j++) {
        uint128 size = lattice_magnitude(tables->sums[i * (size_t)shape->components + (size_t)j]);
        if (size > bound) return 0;
        size = size * multiplier;
        if (size > bound) return 0;
        sum += shape->is_l1 ? size : size * size;
        if (sum > limit) return 0;
      }
    }
  }
  return 1;
}

/* Returns the same norm, with rounding errors. */
static double norm(struct unit_tables *tables, int end) {
  const struct layout *shape = tables->shape;
  double sum = 0;
  if (are_few(tables, end)) return sqrt((double)square_of_pairs(tables, end));
  for (int a = 0; a < shape->ways->count; a++) {
    const struct cross_table *table = &shape->ways->tables[a];
    size_t cells = table->multiplier ? project(tables, table) : 0;
    for (size_t i = 0; i < cells; i++) {
      for (int j = 0; j < end; j++) {
        double size = fabs((double)tables->sums[i * (size_t)shape->components + (size_t)j]);
        size *= table->multiplier;
        sum += shape->is_l1 ? size : size * size;
      }
    }
  }
  return shape->is_l1 ? sum : sqrt(sum);
}

/* ---- clipping -------------------------------------------------------------------------------- */

/*
** Multiplies all values by a factor in [0, 1] and truncates. For means, also clamps each sum to
** twice its count (each row adds 1/2 to the count and at most 1 to the sum): truncation may have
** taken more from the count, and every pair of count and sum must stay in its cone (layout.h).
*/
static void scale(struct unit_tables *tables, double factor) {
  const struct layout *shape = tables->shape;
  size_t components = (size_t)shape->components;
  for (size_t i = 0; i < tables->count * components; i++)
    tables->values[i] = (int128)((double)tables->values[i] * factor);
  for (size_t i = 0; shape->family->is_ratio && i < tables->count; i++) {
    int128 *value = &tables->values[i * components], most = value[0] > 0 ? 2 * value[0] : 0;
    value[1] = lattice_clamp(value[1], -most, most);
  }
}

/*
** Scales the unit until its first `end` components fit. After MOST_ROUNDS rounds the loop scales by
** 0, so that it ends whatever the rounding errors are.
*/
static int shrink(struct unit_tables *tables, int end, int64_t reach) {
  double margin = 1;
  int round = 0;
  for (; !fits(tables, end, reach); round++, margin *= 1 - 0x1p-40) {
    double factor = round < MOST_ROUNDS ? (double)reach / norm(tables, end) * margin : 0;
    scale(tables, fmin(factor, 1));
  }
  return round > 0;
}

int unit_tables_clip(struct unit_tables *tables, const int64_t *cells, int128 *values, size_t count,
                     int *clipped) {
  const struct layout *shape = tables->shape;
  const struct block *block = &shape->blocks[0];
  if (!reserve(tables, count)) return 0;
  tables->count = count;
  tables->values = values;
  for (size_t i = 0; i < count; i++) tables->entries[i] = (struct entry){cells[i], i};
  if (count > 1) qsort(tables->entries, count, sizeof *tables->entries, by_cell);
  tables->has_keys = 0;
  if (shrink(tables, block->lead_end, block->lead_reach)) *clipped = 1;
  if (block->lead_end < block->end && shrink(tables, block->end, block->reach)) *clipped = 1;
  return 1;
}

void unit_tables_measure(const struct layout *shape, const int *keys, const int128 *values,
                         int128 *coordinates) {
  size_t components = (size_t)shape->components;
  for (int a = 0; a < shape->ways->count; a++) {
    const struct cross_table *table = &shape->ways->tables[a];
    if (!table->multiplier) continue;
    int place = table->first_coordinate + ways_cell(shape->ways, table, keys);
    int128 *sums = &coordinates[(size_t)place * components];
    for (size_t j = 0; j < components; j++)
      sums[j] = lattice_add(sums[j], values[j] * table->multiplier);
  }
}
