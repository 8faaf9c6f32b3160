/* cross_sums.c: the ways of a release of cross tables (layout.h), and the sums of these tables
** (internal.h).
** Tests: tests/sums/test_cross_sums.c, tests/mechanism/test_cross_tables.py */
#include "sums/internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

/* ---- making the ways ------------------------------------------------------------------------- */

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

/* Returns the cell of a table with these keys. Attributes outside the table do not matter. */
static int ways_cell(const struct ways *ways, const struct cross_table *table, const int *keys) {
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

#define MOST_COMPONENTS 2 /* of a cell: a mean has two */
#define MOST_SUM        ((int128)1 << 110)
#define MOST_ROUNDS     8 /* of scaling; three are normally enough */

/* Within these bounds the sum over pairs is below 2^127: 2^30 from W, 2^84 and 2 * 2^12 pairs. */
#define FEW   64
#define SMALL ((uint128)1 << 42)

/* A cell in which the unit has rows, and the number of its values. */
struct place {
  int64_t cell;
  size_t at;
};

struct cross_sums {
  const struct layout *shape;
  int64_t *meets; /* W(D) for each set D of attributes */
  /* The unit that is being clipped. */
  size_t count, room;
  const int64_t *cells; /* the caller's */
  int128 *values;       /* the caller's, `components` for each cell */
  int has_keys;         /* `keys` is set; a unit with one cell normally does not need it */
  int *keys;            /* the keys of each cell, WAYS_MAX_ATTRIBUTES apart */
  int has_pairs;        /* `pairs` is set */
  int64_t *pairs;       /* 2 W(D) of each pair of cells: 1 and 0, 2 and 0, 2 and 1, ... */
  int has_order;        /* `order` is set */
  struct place *order;  /* the cells of the full table, sorted */
  struct place *places; /* their cells in one table, sorted, then in this order */
  int128 *sums;         /* components of each cell of one table */
  /* The tables that are being added up (cross_sums_add()). */
  const struct cross_table **by_last; /* the measured tables, by their last attribute */
  int first[WAYS_MAX_ATTRIBUTES + 2]; /* by_last[first[i] ... first[i + 1] - 1] end at level i */
  int last_keys[WAYS_MAX_ATTRIBUTES]; /* of the cell that was added last */
  int128 level_sums[WAYS_MAX_ATTRIBUTES + 1][MOST_COMPONENTS];
};

/* The square of each table, then sums over the tables inside, attribute by attribute. */
static void set_meets(struct cross_sums *tables) {
  const struct ways *ways = tables->shape->ways;
  for (int a = 0; a < ways->count; a++) {
    const struct cross_table *table = &ways->tables[a];
    tables->meets[table->mask] = (int64_t)table->multiplier * table->multiplier;
  }
  for (int i = 0; i < ways->attributes; i++)
    for (unsigned mask = 0; mask < 1u << ways->attributes; mask++)
      if (mask >> i & 1) tables->meets[mask] += tables->meets[mask & ~(1u << i)];
}

/* Returns the number of the last attribute of a table plus 1, or 0 for the total. */
static int level_of(const struct cross_table *table) {
  int level = 0;
  while (table->mask >> level) level++;
  return level;
}

static void set_levels(struct cross_sums *tables) {
  const struct ways *ways = tables->shape->ways;
  int used = 0;
  for (int level = 0; level <= ways->attributes; level++) {
    tables->first[level] = used;
    for (int a = 0; a < ways->count; a++) {
      const struct cross_table *table = &ways->tables[a];
      if (table->multiplier && level_of(table) == level) tables->by_last[used++] = table;
    }
  }
  tables->first[ways->attributes + 1] = used;
}

struct cross_sums *cross_sums_open(const struct layout *shape) {
  struct cross_sums *tables = calloc(1, sizeof *tables);
  if (!tables) return 0;
  tables->shape = shape;
  tables->meets = calloc((size_t)1 << shape->ways->attributes, sizeof *tables->meets);
  tables->pairs = malloc(sizeof *tables->pairs * (FEW * (FEW - 1) / 2));
  tables->by_last = malloc(sizeof *tables->by_last * (size_t)shape->ways->count);
  if (tables->meets && tables->pairs && tables->by_last) {
    set_meets(tables);
    set_levels(tables);
    return tables;
  }
  cross_sums_close(tables);
  return 0;
}

void cross_sums_close(struct cross_sums *tables) {
  if (!tables) return;
  void *arrays[] = {tables->meets, tables->pairs, (void *)tables->by_last,
                    tables->keys,  tables->order, tables->places,
                    tables->sums};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  free(tables);
}

static int reserve(struct cross_sums *tables, size_t count) {
  if (count <= tables->room) return 1;
  size_t room = count + tables->room, components = (size_t)tables->shape->components;
  if (!memory_resize(&tables->order, sizeof *tables->order * room) ||
      !memory_resize(&tables->keys, sizeof *tables->keys * room * WAYS_MAX_ATTRIBUTES) ||
      !memory_resize(&tables->places, sizeof *tables->places * room) ||
      !memory_resize(&tables->sums, sizeof *tables->sums * room * components))
    return 0;
  tables->room = room;
  return 1;
}

/* ---- one table ------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  int more = (x->cell > y->cell) - (x->cell < y->cell);
  return more ? more : (x->at > y->at) - (x->at < y->at);
}

/* Sets the keys of all cells. */
static void set_keys(struct cross_sums *tables) {
  for (size_t i = 0; i < tables->count && !tables->has_keys; i++)
    ways_full_keys(tables->shape->ways, tables->cells[i], &tables->keys[i * WAYS_MAX_ATTRIBUTES]);
  tables->has_keys = 1;
}

/* Sorts the cells, so that nothing depends on the order in which the caller has them. */
static void set_order(struct cross_sums *tables) {
  if (tables->has_order) return;
  for (size_t i = 0; i < tables->count; i++) tables->order[i] = (struct place){tables->cells[i], i};
  qsort(tables->order, tables->count, sizeof *tables->order, by_cell);
  tables->has_order = 1;
}

/* Adds up the unit's values in the cells of one table. Afterwards places[i].cell is cell i, and
** `sums` holds its sums. Returns the number of cells. The additions saturate in the order of the
** cells of the full table. Sums of rows are far from the limit, but sums from the state of a shard
** can reach it. */
static size_t project(struct cross_sums *tables, const struct cross_table *table) {
  const struct ways *ways = tables->shape->ways;
  size_t components = (size_t)tables->shape->components, used = 0;
  set_keys(tables);
  set_order(tables);
  for (size_t i = 0; i < tables->count; i++) {
    const int *keys = &tables->keys[tables->order[i].at * WAYS_MAX_ATTRIBUTES];
    tables->places[i] = (struct place){ways_cell(ways, table, keys), i};
  }
  qsort(tables->places, tables->count, sizeof *tables->places, by_cell);
  for (size_t i = 0; i < tables->count; i++) {
    struct place place = tables->places[i];
    const int128 *value = &tables->values[tables->order[place.at].at * components];
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

/* Two rows in cells that agree in the attributes D meet in the measured tables inside D. With W(D)
** the sum of the squared multipliers of these tables,
**
**     |v|^2 = sum over all pairs i, j of the unit's cells of W(D_ij) <values_i, values_j>
**
** which is the fast way for units with few cells. Otherwise the tables are added up one by one. */

/* Returns whether the sum over pairs can be computed for the first `end` components. */
static int are_few(const struct cross_sums *tables, int end) {
  size_t components = (size_t)tables->shape->components;
  if (tables->shape->is_l1 || tables->count > FEW) return 0;
  for (size_t i = 0; i < tables->count; i++)
    for (int j = 0; j < end; j++)
      if (lattice_magnitude(tables->values[i * components + (size_t)j]) >= SMALL) return 0;
  return 1;
}

/* Sets 2 W(D) of all pairs of cells, where D are the attributes in which the two cells agree. */
static void set_pairs(struct cross_sums *tables) {
  int attributes = tables->shape->ways->attributes;
  int64_t *pair = tables->pairs;
  if (tables->has_pairs) return;
  set_keys(tables);
  for (size_t i = 1; i < tables->count; i++) {
    const int *x = &tables->keys[i * WAYS_MAX_ATTRIBUTES];
    for (const int *y = tables->keys; y < x; y += WAYS_MAX_ATTRIBUTES) {
      unsigned agreement = 0;
      for (int a = 0; a < attributes; a++) agreement |= (unsigned)(x[a] == y[a]) << a;
      *pair++ = 2 * tables->meets[agreement];
    }
  }
  tables->has_pairs = 1;
}

/* Returns |v|^2 for the first `end` components. are_few() must hold. */
static uint128 square_of_pairs(struct cross_sums *tables, int end) {
  size_t components = (size_t)tables->shape->components;
  int64_t own = tables->meets[(1u << tables->shape->ways->attributes) - 1];
  const int64_t *pair = tables->pairs;
  int128 sum = 0;
  if (tables->count > 1) set_pairs(tables);
  for (size_t i = 0; i < tables->count; i++) {
    const int128 *x = &tables->values[i * components];
    for (int j = 0; j < end; j++) {
      int64_t size = (int64_t)x[j];
      int128 met = (int128)size * own;
      for (size_t k = 0; k < i; k++)
        met += (int128)(int64_t)tables->values[k * components + (size_t)j] * pair[k];
      sum += met * size;
    }
    pair += i;
  }
  return (uint128)sum;
}

/* Returns whether |v| <= `reach` < 2^54, exactly, by adding up each table. Nothing overflows. */
static int tables_fit(struct cross_sums *tables, int end, int64_t reach) {
  const struct layout *shape = tables->shape;
  uint128 bound = (uint128)reach, limit = shape->is_l1 ? bound : bound * bound, sum = 0;
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
static double norm_of_tables(struct cross_sums *tables, int end) {
  const struct layout *shape = tables->shape;
  double sum = 0;
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

/* Returns whether the first `end` components of v have a norm of at most `reach` < 2^54, exactly.
** If not, sets *norm to this norm, with rounding errors. */
static int fits(struct cross_sums *tables, int end, int64_t reach, double *norm) {
  if (are_few(tables, end)) {
    uint128 square = square_of_pairs(tables, end);
    if (square <= (uint128)reach * (uint128)reach) return 1;
    *norm = sqrt((double)square);
    return 0;
  }
  if (tables_fit(tables, end, reach)) return 1;
  *norm = norm_of_tables(tables, end);
  return 0;
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* Multiplies all values by a factor in [0, 1] and truncates. For means, also clamps each sum to
** twice its count (each row adds 1/2 to the count and at most 1 to the sum): truncation may have
** taken more from the count, and every pair of count and sum must stay in its cone (layout.h). */
static void scale(struct cross_sums *tables, double factor) {
  const struct layout *shape = tables->shape;
  size_t components = (size_t)shape->components;
  for (size_t i = 0; i < tables->count * components; i++)
    tables->values[i] = (int128)((double)tables->values[i] * factor);
  for (size_t i = 0; shape->family->is_ratio && i < tables->count; i++) {
    int128 *value = &tables->values[i * components], most = value[0] > 0 ? 2 * value[0] : 0;
    value[1] = lattice_clamp(value[1], -most, most);
  }
}

/* Scales the unit until its first `end` components fit. Where values have both signs, truncation
** can make a sum longer, each value by less than 1, or for means by less than 3. So the later
** rounds aim at less, down to a norm that fits after any truncation. After MOST_ROUNDS rounds the
** loop scales by 0, so that it ends whatever the rounding errors are. */
static int shrink(struct cross_sums *tables, int end, int64_t reach) {
  double most = 4.0 * (double)ways_sum(tables->shape->ways) * (double)tables->count, norm;
  int round = 0;
  for (; !fits(tables, end, reach, &norm); round++) {
    double goal = fmax((double)reach - most * round / (MOST_ROUNDS - 1), 0);
    double factor = round < MOST_ROUNDS ? goal / norm * (1 - round * 0x1p-40) : 0;
    scale(tables, fmin(factor, 1));
  }
  return round > 0;
}

static int begin(struct cross_sums *tables, const int64_t *cells, int128 *values, size_t count) {
  if (!reserve(tables, count)) return 0;
  tables->count = count;
  tables->cells = cells;
  tables->values = values;
  tables->has_keys = tables->has_pairs = tables->has_order = 0;
  return 1;
}

int cross_sums_clip(struct cross_sums *tables, const int64_t *cells, int128 *values, size_t count,
                    int *clipped) {
  const struct layout *shape = tables->shape;
  const struct block *block = &shape->blocks[0];
  if (!begin(tables, cells, values, count)) return 0;
  if (shrink(tables, block->lead_end, block->lead_reach)) *clipped = 1;
  if (block->lead_end < block->end && shrink(tables, block->end, block->reach)) *clipped = 1;
  return 1;
}

/* ---- households ------------------------------------------------------------------------------ */

/* Lists the values of the measured tables and their places. Returns how many these are. */
static size_t list_coordinates(struct cross_sums *tables, size_t *places, int128 *list) {
  const struct ways *ways = tables->shape->ways;
  size_t components = (size_t)tables->shape->components, used = 0;
  for (int a = 0; a < ways->count; a++) {
    const struct cross_table *table = &ways->tables[a];
    size_t cells = table->multiplier ? project(tables, table) : 0;
    for (size_t i = 0; i < cells * components; i++) {
      size_t cell = (size_t)(table->first_coordinate + tables->places[i / components].cell);
      places[used] = cell * components + i % components;
      list[used++] = lattice_clamp(tables->sums[i], -MOST_SUM, MOST_SUM) * table->multiplier;
    }
  }
  return used;
}

int cross_sums_project(struct cross_sums *tables, const int64_t *cells, int128 *values,
                       size_t count, int64_t reach, int128 *coordinates, int *is_short) {
  double norm;
  if (!begin(tables, cells, values, count)) return 0;
  *is_short = fits(tables, tables->shape->components, reach, &norm);
  if (*is_short) return 1;
  size_t room = count * (size_t)(tables->shape->ways->count * tables->shape->components);
  size_t *places = malloc(sizeof *places * room);
  int128 *list = malloc(sizeof *list * room);
  int made = places && list;
  size_t used = made ? list_coordinates(tables, places, list) : 0;
  household_project(list, used, reach, 1);
  for (size_t i = 0; i < used; i++) coordinates[places[i]] += list[i];
  free(places);
  free(list);
  return made;
}

/* ---- all units ------------------------------------------------------------------------------- */

/* Adds the sum of a level to the tables that end there, and to the sum of the level before. */
static void add_level(struct cross_sums *tables, int level, int128 *coordinates) {
  const struct ways *ways = tables->shape->ways;
  size_t components = (size_t)tables->shape->components;
  int128 *sums = tables->level_sums[level];
  for (size_t j = 0; j < components; j++) sums[j] = lattice_clamp(sums[j], -MOST_SUM, MOST_SUM);
  for (int i = tables->first[level]; i < tables->first[level + 1]; i++) {
    const struct cross_table *table = tables->by_last[i];
    int place = table->first_coordinate + ways_cell(ways, table, tables->last_keys);
    int128 *totals = &coordinates[(size_t)place * components];
    for (size_t j = 0; j < components; j++)
      totals[j] = lattice_add(totals[j], sums[j] * table->multiplier);
  }
  for (size_t j = 0; j < components; j++) {
    int128 *before = level > 0 ? &tables->level_sums[level - 1][j] : 0;
    if (before) *before = lattice_add(*before, sums[j]);
    sums[j] = 0;
  }
}

void cross_sums_add(struct cross_sums *tables, const int *keys, const int128 *values,
                    int128 *coordinates) {
  int attributes = tables->shape->ways->attributes, same = 0;
  while (same < attributes && keys[same] == tables->last_keys[same]) same++;
  for (int level = attributes; level > same; level--) add_level(tables, level, coordinates);
  memcpy(tables->last_keys, keys, sizeof *keys * (size_t)attributes);
  for (int j = 0; j < tables->shape->components; j++) {
    int128 *sum = &tables->level_sums[attributes][j];
    *sum = lattice_add(*sum, values[j]);
  }
}

void cross_sums_end(struct cross_sums *tables, int128 *coordinates) {
  for (int level = tables->shape->ways->attributes; level >= 0; level--)
    add_level(tables, level, coordinates);
}

/* ---- numbers of cells ------------------------------------------------------------------------ */

struct full_cells {
  int is_direct;  /* a cell is its own number, and `count` is the size of the full table */
  int64_t *cells; /* by number */
  struct numbering numbers; /* the number of each cell */
  size_t count, room;
  int64_t last; /* the cell of the last call and its number: rows are often sorted */
  int last_number;
};

struct full_cells *full_cells_open(int64_t size) {
  static const struct secret none; /* nobody chooses the cells of a table */
  struct full_cells *table = calloc(1, sizeof *table);
  if (!table) return 0;
  table->last = -1;
  table->is_direct = size <= FULL_CELLS_DIRECT;
  if (table->is_direct) table->count = (size_t)size;
  if (table->is_direct || numbering_open(&table->numbers, &none)) return table;
  free(table);
  return 0;
}

void full_cells_close(struct full_cells *table) {
  if (!table) return;
  if (!table->is_direct) numbering_close(&table->numbers);
  free(table->cells);
  free(table);
}

int full_cells_number(struct full_cells *table, int64_t cell) {
  if (table->is_direct) return (int)cell;
  if (cell == table->last) return table->last_number;
  int64_t number = numbering_get(&table->numbers, identity_integer(cell));
  if (number < 0) {
    number = (int64_t)table->count;
    int64_t *cells = chunks_grown(table->cells, sizeof *cells, table->count, &table->room);
    if (!cells || number == INT_MAX - 1) return -1;
    table->cells = cells;
    if (numbering_put(&table->numbers, identity_integer(cell), number) < 0) return -1;
    cells[table->count++] = cell;
  }
  table->last = cell;
  return table->last_number = (int)number;
}

int full_cells_count(const struct full_cells *table) {
  return (int)table->count;
}

int64_t full_cells_cell(const struct full_cells *table, int number) {
  return table->is_direct ? number : table->cells[number];
}
