/* vector_sum.c: see sums.h. vector_totals.c adds the units to the totals.
** Tests: tests/sums/test_vector_sum.c, tests/sums/test_kinds_neighbours.py,
** tests/sums/test_vector_parts.c, tests/sums/test_within_neighbours.py */
#include "sums/sums.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "noise/noise.h"
#include "sums/internal.h"
#include "sums/layout.h"

/* The largest number of short rows whose sum is kept in 64 bits. A short row is a row that needs no
** clipping (short_limit()). Each of its components has at most 2^53 steps. */
#define SHORTS 512
#define STEPS  ((int64_t)1 << 61) /* bound on the components in vectors->steps */

/* ---- rows ------------------------------------------------------------------------------------ */

/* Notes that a row of the unit was outside the range of x. */
static int note_outside(struct vector_sum *vectors, struct identity unit) {
  return !unit_table_add(&vectors->outsides, unit, 1) || unit_table_flush(&vectors->outsides, 0, 0);
}

/* Notes the next row if it is outside the range of x. Returns 0 when out of memory. */
static int note_row(struct vector_sum *vectors, struct identity unit) {
  int outside = vectors->outside;
  vectors->outside = 0;
  return !outside || !vectors->by_unit || note_outside(vectors, unit);
}

/* Adds vectors->row to the records of the unit or, if rows are protected, to the totals. */
static int take_row(struct vector_sum *vectors, struct identity unit, uint32_t slot) {
  int outside = vectors->outside;
  if (!note_row(vectors, unit)) return 0;
  if (vectors->by_unit) return partitioned_sums_add(vectors->records, unit, slot, vectors->row);
  vectors->scratch.slots[0] = slot; /* one row alone (V2) */
  memcpy(vectors->scratch.values, vectors->row, sizeof *vectors->row * (size_t)vectors->components);
  return vector_totals_add(vectors, 1, outside);
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

/* Returns the number of totals of a cell. Cross tables have totals of the full table first. */
static size_t row_width(const struct layout *shape) {
  return (size_t)(shape->ways ? shape->components : shape->width);
}

/* Starts the next row: writes its count, if there is one, and returns the address of its other
** components. Null: out of memory. */
static inline int64_t *begin_row(struct vector_sum *vectors, int cell) {
  const struct layout *shape = vectors->shape;
  int64_t *steps = vectors->steps;
  if ((shape->max_groups || shape->ways) &&
      !vector_totals_reserve(vectors, ((size_t)cell + 1) * row_width(shape)))
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

/* The numbers by which a row's vector is divided, its largest component, so that nothing overflows,
** and then multiplied to have a norm of at most `reach`. The factor is never so small that digits
** are lost, and it includes a margin for the rounding errors. */
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

/* Returns the largest squared norm, in steps, of a vector that vector_sum_add_vector() and
** clip_vector() would not change: for sums without a count the square of the block's reach,
** exactly. For means, row_scale() must not change it either. The relative errors of row_scale() and
** of rounding at most 4096 components to steps are each below 2^-39; the margin of 2^-38 covers
** both. The count of such a vector fits, too. */
static uint128 short_limit(const struct contribution *question, const struct layout *shape) {
  int64_t reach = shape->blocks[0].reach;
  if (shape->counts) reach = (int64_t)(question->clip * shape->scale * (1 - 0x1p-38));
  return (uint128)reach * (uint128)reach;
}

static void flush_shorts(struct vector_sum *vectors) {
  for (int i = 0; i < vectors->components && vectors->short_count; i++) {
    vectors->totals[i] += vectors->shorts[i];
    vectors->shorts[i] = 0;
  }
  vectors->short_count = 0;
}

/* The loop passes over the bytes once, without a branch that depends on the numbers. Each component
** must be at most 2^53 steps, so that the sum of squares fits 128 bits; otherwise the result of
** llrint() may be unspecified, and the row is not used. The rows of a unit need not be short,
** because clip_vector() clips only their sum. */
int vector_sum_add_floats(struct vector_sum *vectors, struct identity unit,
                          const unsigned char *floats) {
  const struct layout *shape = vectors->shape;
  if (shape->is_l1 || (vectors->by_unit && shape->counts) || shape->diagnoses) return 0;
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
  if (++vectors->short_count == SHORTS) flush_shorts(vectors);
  return 1;
}

/* ---- sums from elsewhere --------------------------------------------------------------------- */

int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, uint32_t slot,
                          const int128 *values) {
  const struct layout *shape = vectors->shape;
  size_t cells = (size_t)slot / (size_t)shape->bins + 1;
  if ((shape->max_groups || shape->ways) &&
      !vector_totals_reserve(vectors, cells * row_width(shape)))
    return 0;
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
  if (!vector_totals_reserve(vectors, first + count)) return 0;
  if (is_private) group_keys_keep(vectors->cells, &(uint32_t){(uint32_t)cell}, 1);
  flush_shorts(vectors); /* short rows must be in the totals before the totals can saturate */
  int128 *totals = &vectors->totals[first];
  for (size_t i = 0; i < count; i++) totals[i] = lattice_add(totals[i], values[i]);
  return 1;
}

int vector_sum_map(struct vector_sum *vectors, const struct vector_sum *other, int **cells) {
  int count = other->cells ? group_keys_count(other->cells) : 0, differs = 0;
  if (other->full) count = full_cells_count(other->full);
  *cells = count ? malloc(sizeof **cells * (size_t)count) : 0;
  if (count && !*cells) return 0;
  for (int i = 0; i < count; i++) {
    int *cell = &(*cells)[i];
    if (other->full) {
      *cell = full_cells_number(vectors->full, full_cells_cell(other->full, i));
    } else {
      const char *text = group_keys_text(other->cells, i);
      *cell = group_keys_name(vectors->cells, identity_name(&vectors->secret, text), text);
    }
    if (*cell < 0) return 0;
    differs |= *cell != i;
  }
  if (!differs) {
    free(*cells);
    *cells = 0;
  }
  size_t all = vectors->cells ? (size_t)group_keys_count(vectors->cells) : 0;
  if (vectors->full) all = (size_t)full_cells_count(vectors->full);
  return !differs || vector_totals_reserve(vectors, all * row_width(vectors->shape));
}

int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context) {
  return !vectors->failed && partitioned_sums_each(vectors->records, take, context);
}

struct matrices {
  struct vector_sum *vectors;
  take_matrix *take;
  void *context;
};

static int by_cell(const void *a, const void *b) {
  uint32_t x = record_cell(*(const record_word *const *)a),
           y = record_cell(*(const record_word *const *)b);
  return (x > y) - (x < y);
}

static int give_matrix(void *context, const record_word *const *list, size_t count) {
  const struct matrices *matrices = context;
  struct vector_sum *vectors = matrices->vectors;
  if (!vector_scratch_reserve(vectors, count)) return 0;
  struct scratch *scratch = &vectors->scratch;
  memcpy(scratch->chosen, list, sizeof *list * count);
  if (count > 1) qsort(scratch->chosen, count, sizeof *scratch->chosen, by_cell);
  for (size_t i = 0; i < count; i++) scratch->slots[i] = record_cell(scratch->chosen[i]);
  record_values(vectors->records, scratch->chosen, count, scratch->values);
  return matrices->take(matrices->context, record_unit(vectors->records, list[0]), count,
                        scratch->slots, scratch->values);
}

int vector_sum_units(struct vector_sum *vectors, take_matrix *take, void *context) {
  struct matrices matrices = {vectors, take, context};
  return !vectors->failed && partitioned_sums_each_unit(vectors->records, give_matrix, &matrices);
}

/* ---- vectors --------------------------------------------------------------------------------- */

static int open_tables(struct vector_sum *vectors, char *const *keys) {
  const struct layout *shape = vectors->shape;
  size_t components = (size_t)shape->components;
  vectors->row = calloc(components, sizeof *vectors->row);
  vectors->steps = calloc(components, sizeof *vectors->steps);
  vectors->shorts = calloc(components, sizeof *vectors->shorts);
  if (!vectors->row || !vectors->steps || !vectors->shorts ||
      (shape->ways && !(vectors->full = full_cells_open(ways_full(shape->ways)))) ||
      !vector_scratch_reserve(vectors, 1) ||
      !vector_totals_reserve(vectors,
                             shape->coordinates && !shape->ways ? (size_t)shape->coordinates : 1))
    return 0;
  if (vectors->question.keys) {
    vectors->cells = group_keys_open(&vectors->secret, keys, shape->cells, shape->cells == 0);
    if (!vectors->cells) return 0;
  }
  if (shape->ways) {
    assert(shape->coordinates > 0);
    vectors->tables = cross_sums_open(shape);
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
                                   int by_unit, char *const *keys, const struct secret *secret) {
  struct vector_sum *vectors = calloc(1, sizeof *vectors);
  if (!vectors) return 0;
  if (secret) vectors->secret = *secret;
  vectors->question = *question;
  vectors->household = HOUSEHOLD_NONE;
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
  if ((vectors->edges || !has_edges) && (secret || secret_draw(&vectors->secret)) &&
      open_tables(vectors, keys))
    return vectors;
  vector_sum_close(vectors);
  return 0;
}

void vector_sum_forget_units(struct vector_sum *vectors) {
  partitioned_sums_close(vectors->records);
  if (vectors->outsides.chunks) unit_table_close(&vectors->outsides);
  vectors->records = 0;
  vectors->by_unit = 0;
}

void vector_sum_use_households(struct vector_sum *vectors, const struct households *households) {
  vectors->households = households;
  partitioned_sums_expect(vectors->records, households ? households_expect : 0, households);
}

void vector_sum_close(struct vector_sum *vectors) {
  if (!vectors) return;
  vector_sum_forget_units(vectors);
  if (!vectors->first) {
    group_keys_close(vectors->cells);
    full_cells_close(vectors->full);
  }
  cross_sums_close(vectors->tables);
  partitioned_sums_close(vectors->shared);
  partitioned_sums_close(vectors->tallies);
  const struct scratch *scratch = &vectors->scratch;
  void *arrays[] = {vectors->row,    vectors->totals, scratch->items,  scratch->chosen,
                    scratch->slots,  scratch->places, scratch->values, vectors->steps,
                    vectors->shorts, vectors->edges,  vectors->joined, vectors->full_list,
                    vectors->late,   vectors->cut};
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

/* Sorts the kept private keys by text, and copies the totals in this order. Returns their number,
** or -1 if memory runs out. */
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
  for (int i = 0; vectors->cut && i < shape->coordinates; i++) totals[i] += vectors->cut[i];
  size_t components = (size_t)shape->components, room = vectors->totals_room / components;
  int keys[WAYS_MAX_ATTRIBUTES] = {0};
  int64_t at = 0; /* the cell with these keys */
  for (int i = 0; i < full_cells_count(vectors->full) && (size_t)i < room; i++) {
    const int128 *values = &vectors->totals[(size_t)i * components];
    int64_t cell = full_cells_cell(vectors->full, i);
    if (cell != at) ways_full_keys(shape->ways, cell, keys);
    if (values[0] != 0 || values[components - 1] != 0)
      cross_sums_add(vectors->tables, keys, values, totals);
    ways_next(shape->ways, keys);
    at = cell + 1;
  }
  cross_sums_end(vectors->tables, totals);
}

static int add_units(struct vector_sum *vectors) {
  return vector_totals_begin(vectors) &&
         partitioned_sums_each_unit(vectors->records, vector_totals_unit, vectors) &&
         vector_households_add(vectors);
}

int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys) {
  const struct layout *shape = vectors->shape;
  *keys = 0;
  *cells = shape->cells;
  if (vectors->failed) return 0;
  flush_shorts(vectors);
  if (vectors->by_unit && !vectors->is_added && !add_units(vectors)) return 0;
  int is_private = shape->cells == 0;
  size_t count = is_private ? (size_t)group_keys_count(vectors->cells) * (size_t)shape->width
                            : (size_t)shape->coordinates;
  int128 *totals = malloc(sizeof *totals * (count + 1));
  if (!totals) return 0;
  if (!is_private) {
    if (shape->ways) {
      vector_late_add(vectors);
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
  tally_join(&vectors->tally, &others->tally);
  return !others->outsides.chunks || (unit_table_flush(&others->outsides, 0, 0) &&
                                      unit_table_each(&others->outsides, take_outside, vectors));
}

/* ---- on several threads ---------------------------------------------------------------------- */

struct vector_parts {
  int count;
  struct vector_sum **list;
  struct partitioned_sums **records; /* of each vector */
  int **maps;                        /* vector_sum_map() of each vector but the first */
  struct record_parts parts;
  atomic_int is_wide; /* a sum needs 128 bits */
};

struct vector_parts *vector_parts_open(struct vector_sum *const *list, int count) {
  struct vector_parts *parts = calloc(1, sizeof *parts);
  if (!parts) return 0;
  size_t size = (size_t)count;
  parts->count = count;
  parts->list = calloc(size, sizeof(struct vector_sum *));
  parts->records = calloc(size, sizeof(struct partitioned_sums *));
  parts->maps = calloc(size, sizeof(int *));
  int going = parts->list && parts->records && parts->maps;
  for (int i = 0; i < count && going; i++) {
    parts->list[i] = list[i];
    parts->records[i] = list[i]->records;
    going = !list[i]->failed && (i == 0 || vector_sum_map(list[0], list[i], &parts->maps[i]));
  }
  if (going) return parts;
  vector_parts_close(parts);
  return 0;
}

void vector_parts_close(struct vector_parts *parts) {
  if (!parts) return;
  for (int i = 0; parts->maps && i < parts->count; i++) free(parts->maps[i]);
  free(parts->list);
  free(parts->records);
  free(parts->maps);
  free(parts->parts.list);
  free(parts);
}

int vector_parts_prepare(struct vector_parts *parts, int number) {
  const struct vector_sum *vectors = parts->list[number];
  if (!partitioned_sums_end(vectors->records)) return 0;
  if (parts->maps[number])
    partitioned_sums_translate(vectors->records, parts->maps[number],
                               (uint32_t)vectors->shape->bins);
  return 1;
}

static int borrow(struct vector_sum *vectors, struct vector_sum *first) {
  group_keys_close(vectors->cells);
  full_cells_close(vectors->full);
  vectors->first = first;
  vectors->cells = first->cells;
  vectors->full = first->full;
  return vector_sum_join_tally(first, vectors);
}

int vector_parts_find(struct vector_parts *parts, unsigned *count) {
  struct vector_sum *first = parts->list[0];
  *count = 0;
  for (int i = 1; i < parts->count; i++)
    if (!borrow(parts->list[i], first)) return 0;
  size_t room = 0;
  for (int i = 0; i < parts->count; i++)
    if (parts->list[i]->totals_room > room) room = parts->list[i]->totals_room;
  for (int i = 0; i < parts->count; i++)
    if (!vector_totals_reserve(parts->list[i], room) || !vector_totals_begin(parts->list[i]))
      return 0;
  if (!partitioned_sums_parts(parts->records, parts->count, &parts->parts)) return 0;
  *count = (unsigned)parts->parts.count;
  return 1;
}

int vector_parts_add(struct vector_parts *parts, int number, unsigned part) {
  struct vector_sum *vectors = parts->list[number];
  if (atomic_load(&parts->is_wide)) return 1;
  enum sums_added added =
      partitioned_sums_take_part(vectors->records, parts->records, parts->count,
                                 &parts->parts.list[part], vector_totals_unit, vectors);
  if (added == SUMS_WIDE) atomic_store(&parts->is_wide, 1);
  return added != SUMS_FAILED;
}

int vector_parts_end(struct vector_parts *parts) {
  struct vector_sum *first = parts->list[0];
  if (atomic_load(&parts->is_wide)) return 0;
  for (int i = 1; i < parts->count; i++) {
    struct vector_sum *vectors = parts->list[i];
    if (vectors->late) vector_late_add(vectors);
    for (size_t j = 0; j < first->totals_room && j < vectors->totals_room; j++)
      first->totals[j] += vectors->totals[j];
    tally_join(&first->tally, &vectors->tally);
    if (first->households && !vector_households_join(first, vectors)) return 0;
  }
  if (!vector_households_add(first)) return 0;
  return first->is_added = 1;
}
