/*
** vector_sum.c: see vector_sum.h. A record (partitioned_sums.h) is the sum of a unit's rows in one
** cell.
*/
#include "sums/vector_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "noise/entropy.h"
#include "base/little_endian.h"
#include "sums/clip.h"
#include "sums/decimal.h"
#include "sums/first_keys.h"
#include "sums/partitioned_sums.h"
#include "sums/scalar_sum.h"
#include "sums/tree.h"
#include "sums/unit_tables.h"

/*
** The largest number of short rows whose sum is kept in 64 bits. A short row is a row that needs no
** clipping (short_limit()). Each of its components has at most 2^53 steps.
*/
#define SHORTS 512
#define STEPS  ((int64_t)1 << 61) /* bound on the components in vectors->steps */
#define ONES   64                 /* number of stored results of clip_counts() */

/* The clipped sums of a unit in a cell of the full table, which wait to be added to the totals. */
#define LATE 32
struct late {
  int128 *total;
  int128 values[2]; /* a mean has two components, other cross tables one */
};

/* Room for the matrix of one unit. */
struct scratch {
  struct item *items;
  const record_word **chosen; /* the records that the unit keeps */
  uint32_t *slots;            /* slots of the records */
  size_t *places;             /* coordinates of the values */
  int128 *values;
  size_t room; /* number of records for which the arrays have room */
};

struct vector_sum {
  struct contribution question;
  const struct layout *shape;
  int by_unit, components;
  double *edges;      /* of the bins, with bins of equal width; otherwise null */
  int64_t each_count; /* if the first component is a count: what a row adds to it; otherwise 0 */
  int failed;         /* memory ran out and rows were lost; stays set */
  struct secret secret;
  struct group_keys *cells;         /* null without keys */
  struct full_cells *full;          /* cross tables: the cells of the full table; otherwise null */
  struct unit_tables *tables;       /* cross tables */
  int128 *joined;                   /* cross tables: coordinates that other vectors have added */
  struct late *late;                /* cross tables: values that wait while the processor fetches */
  int late_count;                   /* their totals into its cache */
  int64_t *full_list;               /* cross tables: the cells of the unit that is being added */
  struct partitioned_sums *records; /* null if rows are protected instead of units */
  int128 *row;                      /* the components of the row that is being added */
  int128 *totals; /* the totals of the coordinates; cross tables: of the cells of the full table */
  size_t totals_room;
  int64_t *steps;      /* the same as `row`, if 64 bits suffice; a count is then a number of rows */
  int64_t *shorts;     /* the sums of short rows that are not in the totals yet */
  int short_count;     /* the number of these rows */
  uint128 short_limit; /* bound on the squared norm of a short row, in steps */
  struct scratch scratch;
  int64_t ones[ONES]; /* ones[n]: the component to which clip_counts() clips n counts of 1, or 0 */
  struct tally tally;
  int outside;                /* the row that is being added is outside the range of x */
  struct unit_table outsides; /* the units with such rows; open if diagnose and by_unit */
};

/* ---- one unit's matrix into the totals ------------------------------------------------------- */

static int scratch_reserve(struct vector_sum *vectors, size_t records) {
  struct scratch *scratch = &vectors->scratch;
  if (records <= scratch->room) return 1;
  size_t room = records + scratch->room;
  const struct layout *shape = vectors->shape;
  size_t places = room * (size_t)(shape->tree.levels ? shape->tree.levels : 1);
  if (shape->selects) places += room; /* the counts of the unit's keys */
  struct item *items = realloc(scratch->items, sizeof *items * room);
  if (items) scratch->items = items;
  const record_word **chosen = realloc(scratch->chosen, sizeof *chosen * room);
  if (chosen) scratch->chosen = chosen;
  uint32_t *slots = realloc(scratch->slots, sizeof *slots * room);
  if (slots) scratch->slots = slots;
  size_t *numbers = realloc(scratch->places, sizeof *numbers * places);
  if (numbers) scratch->places = numbers;
  int128 *values = realloc(scratch->values, sizeof *values * places * (size_t)vectors->components);
  if (values) scratch->values = values;
  if (!items || !chosen || !slots || !numbers || !values) return 0;
  if (vectors->full) {
    int64_t *cells = realloc(vectors->full_list, sizeof *cells * room);
    if (!cells) return 0;
    vectors->full_list = cells;
  }
  scratch->room = room;
  return 1;
}

/* Makes room for more coordinates. With private keys, new cells appear while rows are read. */
static void add_late(struct vector_sum *vectors);
static int totals_reserve(struct vector_sum *vectors, size_t coordinates) {
  if (coordinates <= vectors->totals_room) return 1;
  if (vectors->late) add_late(vectors); /* the totals may move */
  size_t room = coordinates + vectors->totals_room;
  int128 *grown = realloc(vectors->totals, sizeof *grown * room);
  if (!grown) {
    vectors->failed = 1;
    return 0;
  }
  memset(grown + vectors->totals_room, 0, sizeof *grown * (room - vectors->totals_room));
  vectors->totals = grown;
  vectors->totals_room = room;
  return 1;
}

/*
** Replaces the slots [start, end) in the scratch by coordinates. Such a slot is a node of one level
** of the trees, or a bin. Each cell has `bins` of these slots, and the first of them is coordinate
** `first` of the cell.
*/
static void locate(struct vector_sum *vectors, size_t start, size_t end, uint32_t bins,
                   size_t first) {
  size_t *places = vectors->scratch.places, width = (size_t)vectors->shape->width;
  for (size_t i = start; i < end; i++) {
    uint32_t slot = (uint32_t)places[i];
    places[i] = slot / bins * width + first + slot % bins;
  }
}

/*
** Computes the counts of the inner nodes above the `count` leaves of one unit. The slots and counts
** of the leaves are in the scratch, sorted by slot, so leaves with the same parent are neighbours.
** The slots of a level are numbered through all cells. Each cell has a power of two of them, so a
** shift turns the slot of a node into the slot of its parent, which is in the same cell. Afterwards
** the scratch contains the coordinates and counts of leaves and inner nodes, leaves first. Returns
** the number of these coordinates. The additions saturate. Sums of rows are far from the limit, but
** sums that were read from a state can reach it.
*/
static size_t climb(struct vector_sum *vectors, size_t count) {
  struct scratch *scratch = &vectors->scratch;
  size_t start = 0, end = count;
  struct tree tree = vectors->shape->tree;
  int own = tree.bits; /* the level has 2^own nodes in each cell */
  size_t first = (size_t)vectors->shape->width;
  for (int level = tree.levels; level >= 1; level--) {
    int above = tree_bits(tree, level - 1), bits = own - above;
    first -= (size_t)1 << own;
    for (size_t i = start; i < end && level > 1; i++) {
      size_t parent = scratch->places[i] >> bits, last = count - 1;
      if (count > end && scratch->places[last] == parent) {
        scratch->values[last] = lattice_add(scratch->values[last], scratch->values[i]);
      } else {
        scratch->places[count] = parent;
        scratch->values[count++] = scratch->values[i];
      }
    }
    locate(vectors, start, end, 1u << own, first);
    own = above;
    start = end;
    end = count;
  }
  return count;
}

/*
** Marks the cells of the unit's `count` slots as kept, for private keys. In histograms and trees
** also adds a count of 1 for each of these cells to the scratch, from the place `end` on. The slots
** are sorted if cells have several bins. Returns the number of these counts.
*/
static size_t keep_cells(struct vector_sum *vectors, size_t count, size_t end) {
  const struct layout *shape = vectors->shape;
  struct scratch *scratch = &vectors->scratch;
  uint32_t bins = (uint32_t)shape->bins, last = UINT32_MAX;
  size_t used = 0;
  if (!shape->family->has_bins) {
    group_keys_keep(vectors->cells, scratch->slots, count);
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    uint32_t cell = scratch->slots[i] / bins;
    if (i > 0 && cell == last) continue;
    group_keys_keep(vectors->cells, &cell, 1);
    if (shape->selects) {
      scratch->places[end + used] = cell * (size_t)shape->width;
      scratch->values[end + used++] = shape->count_steps;
    }
    last = cell;
  }
  return used;
}

/*
** Clips the counts that select private keys, which are the first components of `count` cells. Most
** units have one row in each key. Such counts only depend on their number, so the result is stored.
*/
static void clip_counts(struct vector_sum *vectors, size_t count) {
  int128 *values = vectors->scratch.values, differs = 0;
  size_t components = (size_t)vectors->components;
  const struct layout *shape = vectors->shape;
  for (size_t i = 0; i < count; i++) differs |= values[i * components] ^ shape->count_steps;
  if (differs || count >= ONES) {
    clip_block(shape, &shape->blocks[0], values, count, vectors->components);
    return;
  }
  int64_t *clipped = &vectors->ones[count];
  if (!*clipped) {
    clip_block(shape, &shape->blocks[0], values, count, vectors->components);
    *clipped = (int64_t)values[0];
  }
  for (size_t i = 0; i < count; i++) values[i * components] = *clipped;
}

/*
** Clips the matrix of `count` slots in the scratch and adds the matrix to the totals (V1). The unit
** counts as clipped if `clipped` is true or if clipping changes its matrix. The counts that only
** select private keys do not matter for this.
*/
static void add_matrix(struct vector_sum *vectors, size_t count, int clipped) {
  const struct layout *shape = vectors->shape;
  struct scratch *scratch = &vectors->scratch;
  size_t components = (size_t)vectors->components, end = count, counts = 0;
  size_t scaled = shape->family->has_bins ? 1 : (size_t)shape->width;
  for (size_t i = 0; i < count; i++) scratch->places[i] = scratch->slots[i] * scaled;
  if (shape->tree.levels) {
    end = climb(vectors, count);
  } else if (shape->family->has_bins) {
    locate(vectors, 0, count, (uint32_t)shape->bins, (size_t)shape->selects);
  }
  if (shape->cells == 0) counts = keep_cells(vectors, count, end);
  if (!shape->selects) {
    clipped |= clip_vector(shape, scratch->values, end, vectors->components) != 0;
  } else {
    if (counts) {
      clip_block(shape, &shape->blocks[0], &scratch->values[end], counts, 1);
    } else {
      clip_counts(vectors, count);
    }
    clipped |= clip_block(shape, &shape->blocks[1], scratch->values, end, vectors->components);
  }
  *(clipped ? &vectors->tally.clipped : &vectors->tally.whole) += 1;
  for (size_t i = 0; i < end + counts; i++) {
    int128 *total = &vectors->totals[scratch->places[i]];
    for (size_t j = 0; j < components; j++) total[j] += scratch->values[i * components + j];
  }
}

/* Adds the waiting values to the totals. */
static void add_late(struct vector_sum *vectors) {
  for (int i = 0; i < vectors->late_count; i++)
    for (int j = 0; j < vectors->components; j++)
      vectors->late[i].total[j] += vectors->late[i].values[j];
  vectors->late_count = 0;
}

/*
** Clips the rows of `count` cells of the full table in the scratch, and adds them to the totals
** (V4). Returns 0 when out of memory.
*/
static int add_to_full(struct vector_sum *vectors, size_t count, int clipped) {
  struct scratch *scratch = &vectors->scratch;
  size_t components = (size_t)vectors->components;
  for (size_t i = 0; i < count; i++)
    vectors->full_list[i] = full_cells_cell(vectors->full, (int)scratch->slots[i]);
  if (!unit_tables_clip(vectors->tables, vectors->full_list, scratch->values, count, &clipped))
    return 0;
  *(clipped ? &vectors->tally.clipped : &vectors->tally.whole) += 1;
  for (size_t i = 0; i < count; i++) {
    if (vectors->late_count == LATE) add_late(vectors);
    struct late *late = &vectors->late[vectors->late_count++];
    late->total = &vectors->totals[scratch->slots[i] * components];
    __builtin_prefetch(late->total, 1);
    for (size_t j = 0; j < components; j++) late->values[j] = scratch->values[i * components + j];
  }
  return 1;
}

/*
** Writes the records that a unit keeps to the scratch, sorted by slot if cells have bins. Returns
** their number.
*/
static size_t choose(struct vector_sum *vectors, struct identity unit,
                     const record_word *const *list, size_t count) {
  struct scratch *scratch = &vectors->scratch;
  for (size_t i = 0; i < count; i++)
    scratch->items[i] = (struct item){0, record_cell(list[i]), list[i]};
  count = first_keys(scratch->items, count, vectors->shape, vectors->cells, &vectors->secret, unit);
  for (size_t i = 0; i < count; i++) scratch->chosen[i] = scratch->items[i].record;
  return count;
}

/* Returns whether a row of the unit was outside the range of x. */
static int has_outside(const struct vector_sum *vectors, struct identity unit) {
  int64_t number;
  return vectors->shape->diagnoses && unit_table_get(&vectors->outsides, unit, &number);
}

/*
** Adds the records of a unit to the totals. Returns 0 when out of memory. If a unit keeps all
** records and their order does not matter, there is nothing to choose.
*/
static int add_unit(void *context, const record_word *const *list, size_t count) {
  struct vector_sum *vectors = context;
  const struct layout *shape = vectors->shape;
  if (!scratch_reserve(vectors, count)) return 0;
  struct scratch *scratch = &vectors->scratch;
  struct identity unit = record_unit(vectors->records, list[0]);
  size_t kept = count;
  if (shape->bins > 1 || (shape->max_groups && count > (size_t)shape->max_groups)) {
    kept = choose(vectors, unit, list, count);
    list = scratch->chosen;
  }
  for (size_t i = 0; i < kept; i++) scratch->slots[i] = record_cell(list[i]);
  record_values(vectors->records, list, kept, scratch->values);
  int clipped = kept < count || has_outside(vectors, unit);
  if (shape->ways) return add_to_full(vectors, kept, clipped);
  add_matrix(vectors, kept, clipped);
  return 1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Notes that a row of the unit was outside the range of x. Returns 0 when out of memory. */
static int note_outside(struct vector_sum *vectors, struct identity unit) {
  return !unit_table_add(&vectors->outsides, unit, 1) || unit_table_flush(&vectors->outsides, 0, 0);
}

/* Notes the next row if it is outside the range of x. Returns 0 when out of memory. */
static int note_row(struct vector_sum *vectors, struct identity unit) {
  int outside = vectors->outside;
  vectors->outside = 0;
  return !outside || !vectors->by_unit || note_outside(vectors, unit);
}

/*
** Adds vectors->row to the records of the unit or, if rows are protected, to the totals. Returns 1,
** or 0 if memory runs out.
*/
static int take_row(struct vector_sum *vectors, struct identity unit, uint32_t slot) {
  int outside = vectors->outside;
  if (!note_row(vectors, unit)) return 0;
  if (vectors->by_unit) return partitioned_sums_add(vectors->records, unit, slot, vectors->row);
  vectors->scratch.slots[0] = slot; /* one row alone (V2) */
  memcpy(vectors->scratch.values, vectors->row, sizeof *vectors->row * (size_t)vectors->components);
  if (vectors->full) return add_to_full(vectors, 1, outside);
  add_matrix(vectors, 1, outside);
  return 1;
}

/* Does the same for the row vectors->steps. If the first component is a count, it is 1. */
static int take_steps(struct vector_sum *vectors, struct identity unit, uint32_t slot) {
  const int64_t *steps = vectors->steps;
  if (vectors->by_unit)
    return note_row(vectors, unit) &&
           partitioned_sums_add_narrow(vectors->records, unit, slot, steps);
  for (int i = 0; i < vectors->components; i++) vectors->row[i] = steps[i];
  if (vectors->each_count) vectors->row[0] = vectors->each_count;
  return take_row(vectors, unit, slot);
}

/*
** Starts the next row: writes its count, if the layout has a count, and returns the address of its
** other components. Returns null if memory runs out.
*/
static inline int64_t *begin_row(struct vector_sum *vectors, int cell) {
  const struct layout *shape = vectors->shape;
  int64_t *steps = vectors->steps;
  size_t width = (size_t)(shape->ways ? shape->components : shape->width);
  if ((shape->max_groups || shape->ways) && !totals_reserve(vectors, ((size_t)cell + 1) * width))
    return 0;
  if (shape->counts) *steps++ = 1;
  return steps;
}

/* Notes, with the option diagnose, whether the value of the next row is outside the range of x. */
static inline void check_range(struct vector_sum *vectors, double x) {
  if (vectors->shape->diagnoses)
    vectors->outside = !(x >= vectors->question.low && x <= vectors->question.high);
}

static inline double centred(struct vector_sum *vectors, double x) {
  check_range(vectors, x);
  return layout_centred(x, vectors->question.low, vectors->question.high);
}

int vector_sum_add_one(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  (void)x;
  return begin_row(vectors, cell) && take_steps(vectors, unit, (uint32_t)cell);
}

int vector_sum_add_number(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  int64_t *row = begin_row(vectors, cell);
  if (!row) return 0;
  int128 steps = fine_steps(x, vectors->shape->scale);
  *row = (int64_t)steps;
  if (steps <= STEPS && steps >= -STEPS) return take_steps(vectors, unit, (uint32_t)cell);
  vectors->row[0] = vectors->shape->count_steps; /* if there is a count */
  vectors->row[vectors->components - 1] = steps;
  return take_row(vectors, unit, (uint32_t)cell);
}

int vector_sum_add_centred(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  int64_t *row = begin_row(vectors, cell);
  if (!row) return 0;
  *row = llrint(centred(vectors, x) * vectors->shape->scale);
  return take_steps(vectors, unit, (uint32_t)cell);
}

int vector_sum_add_curve(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  int64_t *row = begin_row(vectors, cell);
  double u = centred(vectors, x), scale = vectors->shape->scale;
  if (!row) return 0;
  row[0] = llrint(u * scale);
  row[1] = llrint((2 * u * u - 1) * scale);
  return take_steps(vectors, unit, (uint32_t)cell);
}

/* The number 1 is count_steps steps. */
int vector_sum_add_pair(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  int64_t *row = begin_row(vectors, cell);
  int64_t all = vectors->shape->count_steps;
  if (!row) return 0;
  row[0] = llrint((1 + centred(vectors, x)) / 2 * (double)all);
  row[1] = all - row[0];
  return take_steps(vectors, unit, (uint32_t)cell);
}

int vector_sum_add_triple(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  int64_t *row = begin_row(vectors, cell);
  int64_t all = vectors->shape->count_steps;
  double w = (1 + centred(vectors, x)) / 2;
  if (!row) return 0;
  row[2] = llrint(w * w * (double)all);
  row[0] = (int64_t)lattice_clamp(llrint((1 - w) * (1 - w) * (double)all), 0, all - row[2]);
  row[1] = all - row[0] - row[2];
  return take_steps(vectors, unit, (uint32_t)cell);
}

static int add_to_bin(struct vector_sum *vectors, struct identity unit, int cell, int bin) {
  int64_t *row = begin_row(vectors, cell);
  uint64_t slot = (uint64_t)cell * (uint64_t)vectors->shape->bins + (uint64_t)bin;
  if (!row || slot > UINT32_MAX) return 0;
  *row = 1;
  return take_steps(vectors, unit, (uint32_t)slot);
}

int vector_sum_add_bin(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  check_range(vectors, x);
  return add_to_bin(vectors, unit, cell, layout_leaf(&vectors->question, vectors->edges, x));
}

int vector_sum_add_exponent(struct vector_sum *vectors, struct identity unit, int cell, double x) {
  return add_to_bin(vectors, unit, cell, layout_exponent_bin(x));
}

/*
** The two numbers that scale a row's vector to a norm of at most `reach`, in the norm of the
** family. The code divides each component by `divisor` and multiplies the quotient by `factor`. The
** divisor is the largest component, so nothing overflows. The factor is never so small that digits
** are lost, and it includes a margin for the rounding errors.
*/
struct row_scale {
  double divisor, factor;
};

static struct row_scale row_scale(const double *v, int dimension, double reach, int is_l1) {
  double most = 0, sum = 0;
  for (int i = 0; i < dimension; i++) most = fmax(most, fabs(v[i]));
  if (most == 0) return (struct row_scale){1, 1};
  for (int i = 0; i < dimension; i++) {
    double part = fabs(v[i]) / most;
    sum += is_l1 ? part : part * part;
  }
  double largest = reach / (is_l1 ? sum : sqrt(sum)) * (1 - 0x1p-40);
  return most <= largest ? (struct row_scale){1, 1} : (struct row_scale){most, largest};
}

int vector_sum_add_vector(struct vector_sum *vectors, struct identity unit, const double *v) {
  const struct layout *shape = vectors->shape;
  int128 *row = vectors->row;
  int dimension = vectors->question.size;
  struct row_scale scale = {1, 1};
  if (shape->counts) {
    *row++ = shape->count_steps;
    scale = row_scale(v, dimension, vectors->question.clip, shape->is_l1);
  }
  /* Most rows need no scaling. For them, this branch avoids the divisions. */
  if (scale.divisor == 1 && scale.factor == 1) {
    for (int i = 0; i < dimension; i++) row[i] = fine_steps(v[i], shape->scale);
  } else {
    for (int i = 0; i < dimension; i++)
      row[i] = fine_steps(v[i] / scale.divisor * scale.factor, shape->scale);
    vectors->outside = shape->diagnoses > 0;
  }
  return take_row(vectors, unit, 0);
}

/*
** Returns the largest squared norm, in steps, of a vector that vector_sum_add_vector() and
** clip_vector() would not change. For sums without a count the limit is the square of the block's
** reach, exactly. For means, row_scale() must also leave the vector unchanged. The relative errors
** of row_scale() and of rounding at most 4096 components to steps are each below 2^-39. The margin
** of 2^-38 covers both. If such a vector has a count, the count then fits too.
*/
static uint128 short_limit(const struct contribution *question, const struct layout *shape) {
  int64_t reach = shape->blocks[0].reach;
  if (shape->counts) reach = (int64_t)(question->clip * shape->scale * (1 - 0x1p-38));
  return (uint128)reach * (uint128)reach;
}

/* Adds the waiting short rows to the totals. */
static void flush_shorts(struct vector_sum *vectors) {
  for (int i = 0; i < vectors->components && vectors->short_count; i++) {
    vectors->totals[i] += vectors->shorts[i];
    vectors->shorts[i] = 0;
  }
  vectors->short_count = 0;
}

/*
** The loop passes over the bytes once, without a branch that depends on the numbers. Each component
** must be at most 2^53 steps, so that the sum of squares fits 128 bits. If a component is larger or
** NaN, the result of llrint() is unspecified, and the function does not use the row. The rows of a
** unit need not be short, because clip_vector() clips only their sum.
*/
int vector_sum_add_floats(struct vector_sum *vectors, struct identity unit,
                          const unsigned char *floats) {
  const struct layout *shape = vectors->shape;
  if (shape->is_l1 || (vectors->by_unit && shape->counts)) return 0;
  int64_t *restrict steps = vectors->steps, *restrict shorts = vectors->shorts;
  int dimension = vectors->question.size, near = 1;
  double scale = shape->scale;
  uint128 sum = 0;
  for (int i = 0; i < dimension; i++) {
    double x = binary32(&floats[4 * (size_t)i]) * scale;
    int64_t step = llrint(x);
    near &= fabs(x) <= 0x1p53;
    sum += (uint128)((int128)step * step);
    steps[i] = step;
  }
  if (!near || (sum > vectors->short_limit && !vectors->by_unit)) return 0;
  if (vectors->by_unit) return partitioned_sums_add_narrow(vectors->records, unit, 0, steps);
  if (shape->counts) *shorts++ += shape->count_steps;
  for (int i = 0; i < dimension; i++) shorts[i] += steps[i];
  vectors->tally.whole++;
  if (++vectors->short_count == SHORTS) flush_shorts(vectors);
  return 1;
}

/* ---- sums from elsewhere --------------------------------------------------------------------- */

int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, uint32_t slot,
                          const int128 *values) {
  const struct layout *shape = vectors->shape;
  size_t cells = (size_t)slot / (size_t)shape->bins + 1;
  size_t width = (size_t)(shape->ways ? shape->components : shape->width);
  if ((shape->max_groups || shape->ways) && !totals_reserve(vectors, cells * width)) return 0;
  return partitioned_sums_add(vectors->records, unit, slot, values);
}

int vector_sum_add_totals(struct vector_sum *vectors, int cell, const int128 *values) {
  int is_private = vectors->shape->cells == 0;
  size_t first = (size_t)cell * (size_t)vectors->shape->width;
  size_t count = (size_t)(is_private ? vectors->shape->width : vectors->shape->coordinates);
  if (vectors->full) {
    for (size_t i = 0; i < count; i++)
      vectors->joined[i] = lattice_add(vectors->joined[i], values[i]);
    return 1;
  }
  if (!totals_reserve(vectors, first + count)) return 0;
  if (is_private) group_keys_keep(vectors->cells, &(uint32_t){(uint32_t)cell}, 1);
  flush_shorts(vectors); /* short rows must be in the totals before the totals can saturate */
  int128 *totals = &vectors->totals[first];
  for (size_t i = 0; i < count; i++) totals[i] = lattice_add(totals[i], values[i]);
  return 1;
}

int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context) {
  return !vectors->failed && partitioned_sums_each(vectors->records, take, context);
}

/* ---- vectors --------------------------------------------------------------------------------- */

static int open_tables(struct vector_sum *vectors, char *const *keys) {
  const struct layout *shape = vectors->shape;
  size_t components = (size_t)shape->components;
  vectors->row = calloc(components, sizeof *vectors->row);
  vectors->steps = calloc(components, sizeof *vectors->steps);
  vectors->shorts = calloc(components, sizeof *vectors->shorts);
  if (!vectors->row || !vectors->steps || !vectors->shorts || !secret_draw(&vectors->secret) ||
      (shape->ways && !(vectors->full = full_cells_open(ways_full(shape->ways)))) ||
      !scratch_reserve(vectors, 1) ||
      !totals_reserve(vectors, shape->coordinates && !shape->ways ? (size_t)shape->coordinates : 1))
    return 0;
  if (vectors->question.keys) {
    vectors->cells = group_keys_open(&vectors->secret, keys, shape->cells, shape->cells == 0);
    if (!vectors->cells) return 0;
  }
  if (shape->ways) {
    vectors->tables = unit_tables_open(shape);
    vectors->joined = calloc((size_t)shape->coordinates, sizeof *vectors->joined);
    vectors->late = malloc(sizeof *vectors->late * LATE);
    if (!vectors->tables || !vectors->joined || !vectors->late) return 0;
  }
  if (!vectors->by_unit) return 1;
  if (shape->diagnoses && !unit_table_open(&vectors->outsides, &vectors->secret, 0)) return 0;
  vectors->records =
      partitioned_sums_open(&vectors->secret, shape->components, vectors->each_count);
  return vectors->records != 0;
}

struct vector_sum *vector_sum_open(const struct contribution *question, const struct layout *shape,
                                   int by_unit, char *const *keys) {
  struct vector_sum *vectors = calloc(1, sizeof *vectors);
  if (!vectors) return 0;
  vectors->question = *question;
  vectors->shape = shape;
  vectors->by_unit = by_unit;
  vectors->components = shape->components;
  vectors->each_count = shape->counts ? shape->count_steps : shape->bin_steps;
  vectors->short_limit = short_limit(question, shape);
  int has_edges = shape->family->has_bins && !shape->family->by_exponent && !(question->grid > 0);
  if (has_edges) {
    vectors->edges = malloc(sizeof *vectors->edges * ((size_t)question->size + 1));
    if (vectors->edges)
      decimal_edges(question->low, question->high, question->size, vectors->edges);
  }
  if ((vectors->edges || !has_edges) && open_tables(vectors, keys)) return vectors;
  vector_sum_close(vectors);
  return 0;
}

void vector_sum_close(struct vector_sum *vectors) {
  if (!vectors) return;
  group_keys_close(vectors->cells);
  full_cells_close(vectors->full);
  unit_tables_close(vectors->tables);
  partitioned_sums_close(vectors->records);
  if (vectors->outsides.chunks) unit_table_close(&vectors->outsides);
  const struct scratch *scratch = &vectors->scratch;
  void *arrays[] = {vectors->row,    vectors->totals,    scratch->items,  scratch->chosen,
                    scratch->slots,  scratch->places,    scratch->values, vectors->steps,
                    vectors->shorts, vectors->edges,     vectors->joined, vectors->full_list,
                    vectors->late};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  entropy_wipe(&vectors->secret, sizeof vectors->secret);
  free(vectors);
}

const struct secret *vector_sum_secret(const struct vector_sum *vectors) {
  return &vectors->secret;
}

struct group_keys *vector_sum_cells(struct vector_sum *vectors) {
  return vectors->cells;
}

struct full_cells *vector_sum_full(struct vector_sum *vectors) {
  return vectors->full;
}

const struct layout *vector_sum_shape(const struct vector_sum *vectors) {
  return vectors->shape;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* A private key and its cell, for sorting. */
struct named {
  const char *text;
  int cell;
};

static int by_text(const void *a, const void *b) {
  return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

/*
** Sorts the kept private keys in the order of their texts, and copies the totals in this order.
** Returns the number of these keys, or -1 if memory runs out.
*/
static int sort_cells(const struct vector_sum *vectors, int128 *totals, const char **keys) {
  size_t width = (size_t)vectors->shape->width;
  int cells = group_keys_count(vectors->cells), kept = 0;
  struct named *order = malloc(sizeof *order * (size_t)(cells + 1));
  if (!order) return -1;
  for (int i = 0; i < cells; i++) {
    if (group_keys_is_kept(vectors->cells, i))
      order[kept++] = (struct named){group_keys_text(vectors->cells, i), i};
  }
  qsort(order, (size_t)kept, sizeof *order, by_text);
  for (int i = 0; i < kept; i++) {
    keys[i] = order[i].text;
    memcpy(&totals[(size_t)i * width], &vectors->totals[(size_t)order[i].cell * width],
           sizeof *totals * width);
  }
  free(order);
  return kept;
}

/* Computes the measured tables from the full one (V4). `totals` has room for all coordinates. */
static void measure(const struct vector_sum *vectors, int128 *totals) {
  const struct layout *shape = vectors->shape;
  memcpy(totals, vectors->joined, sizeof *totals * (size_t)shape->coordinates);
  size_t components = (size_t)shape->components, room = vectors->totals_room / components;
  int keys[WAYS_MAX_ATTRIBUTES] = {0};
  int64_t at = 0; /* the cell with these keys */
  for (int i = 0; i < full_cells_count(vectors->full) && (size_t)i < room; i++) {
    const int128 *values = &vectors->totals[(size_t)i * components];
    int64_t cell = full_cells_cell(vectors->full, i);
    if (cell != at) ways_full_keys(shape->ways, cell, keys);
    if (values[0] != 0 || values[components - 1] != 0)
      unit_tables_measure(shape, keys, values, totals);
    ways_next(shape->ways, keys);
    at = cell + 1;
  }
}

int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys) {
  const struct layout *shape = vectors->shape;
  *keys = 0;
  *cells = shape->cells;
  if (vectors->failed) return 0;
  flush_shorts(vectors);
  if (vectors->by_unit && vectors->cells) group_keys_forget(vectors->cells);
  if (vectors->by_unit) vectors->tally = (struct tally){0, 0};
  if (vectors->outsides.chunks && !unit_table_flush(&vectors->outsides, 0, 0)) return 0;
  memset(vectors->totals, 0, vectors->by_unit ? sizeof *vectors->totals * vectors->totals_room : 0);
  if (vectors->by_unit && !partitioned_sums_each_unit(vectors->records, add_unit, vectors))
    return 0;
  int is_private = shape->cells == 0;
  size_t count = is_private ? (size_t)group_keys_count(vectors->cells) * (size_t)shape->width
                            : (size_t)shape->coordinates;
  int128 *totals = malloc(sizeof *totals * (count + 1));
  if (!totals) return 0;
  if (!is_private) {
    if (shape->ways) {
      add_late(vectors);
      measure(vectors, totals);
    } else {
      memcpy(totals, vectors->totals, sizeof *totals * count);
    }
    return totals;
  }
  *keys = malloc(sizeof **keys * (count + 1));
  *cells = *keys ? sort_cells(vectors, totals, *keys) : -1;
  if (*cells >= 0) return totals;
  free(*keys);
  free(totals);
  *keys = 0;
  return 0;
}

/* ---- the tally of clipped units -------------------------------------------------------------- */

struct tally vector_sum_tally(const struct vector_sum *vectors) {
  return vectors->tally;
}

static int take_outside(void *context, struct identity unit, int64_t number) {
  (void)number;
  return note_outside(context, unit);
}

int vector_sum_join_tally(struct vector_sum *vectors, struct vector_sum *others) {
  vectors->tally.clipped += others->tally.clipped;
  vectors->tally.whole += others->tally.whole;
  return !others->outsides.chunks || (unit_table_flush(&others->outsides, 0, 0) &&
                                      unit_table_each(&others->outsides, take_outside, vectors));
}
