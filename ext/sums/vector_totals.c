/* vector_totals.c: see internal.h.
** Tests: tests/sums/test_vector_sum.c, tests/mechanism/test_groups.py */
#include "sums/internal.h"

#include <stdlib.h>
#include <string.h>

#include "os/os.h"

/* A record of the unit whose matrix is being made. Records are sorted by order, then by slot. */
struct item {
  uint64_t order;
  uint32_t slot;
  const record_word *record;
};

int vector_scratch_reserve(struct vector_sum *vectors, size_t records) {
  struct scratch *scratch = &vectors->scratch;
  if (records <= scratch->room) return 1;
  size_t room = records + scratch->room;
  const struct layout *shape = vectors->shape;
  size_t places = room * (size_t)(shape->tree.levels ? shape->tree.levels : 1);
  if (shape->selects) places += room; /* the counts of the unit's keys */
  size_t values = places * (size_t)vectors->components;
  if (!memory_resize(&scratch->items, sizeof *scratch->items * room) ||
      !memory_resize(&scratch->chosen, sizeof *scratch->chosen * room) ||
      !memory_resize(&scratch->slots, sizeof *scratch->slots * room) ||
      !memory_resize(&scratch->places, sizeof *scratch->places * places) ||
      !memory_resize(&scratch->values, sizeof *scratch->values * values) ||
      (vectors->full && !memory_resize(&vectors->full_list, sizeof *vectors->full_list * room)))
    return 0;
  scratch->room = room;
  return 1;
}

void vector_late_add(struct vector_sum *vectors) {
  for (int i = 0; i < vectors->late_count; i++)
    for (int j = 0; j < vectors->components; j++)
      vectors->late[i].total[j] += vectors->late[i].values[j];
  vectors->late_count = 0;
}

int vector_totals_grow(struct vector_sum *vectors, size_t coordinates) {
  if (vectors->late) vector_late_add(vectors); /* the totals may move */
  size_t room = coordinates + vectors->totals_room;
  if (!memory_resize(&vectors->totals, sizeof *vectors->totals * room)) {
    vectors->failed = 1;
    return 0;
  }
  memset(&vectors->totals[vectors->totals_room], 0,
         sizeof *vectors->totals * (room - vectors->totals_room));
  vectors->totals_room = room;
  return 1;
}

static int open_households(struct vector_sum *vectors) {
  const struct layout *shape = vectors->shape;
  partitioned_sums_close(vectors->shared);
  partitioned_sums_close(vectors->tallies);
  vectors->tallies = 0;
  vectors->shared = partitioned_sums_open(&vectors->secret, vectors->components, 0);
  if (shape->ladder.shared) vectors->tallies = partitioned_sums_open(&vectors->secret, 1, 0);
  if (shape->ladder.shared && !vectors->tallies) return 0;
  if (shape->ways && vectors->cut)
    memset(vectors->cut, 0, sizeof *vectors->cut * (size_t)shape->coordinates);
  if (shape->ways && !vectors->cut)
    vectors->cut = calloc((size_t)shape->coordinates, sizeof *vectors->cut);
  return vectors->shared && (vectors->cut || !shape->ways);
}

int vector_totals_begin(struct vector_sum *vectors) {
  if (vectors->cells && !vectors->first) group_keys_forget(vectors->cells);
  vectors->tally = (struct tally){.whole = 0};
  vectors->late_count = 0; /* values of totals that were begun before */
  memset(vectors->totals, 0, sizeof *vectors->totals * vectors->totals_room);
  if (vectors->households && !open_households(vectors)) return 0;
  return !vectors->outsides.chunks || unit_table_flush(&vectors->outsides, 0, 0);
}

/* Replaces the slots [start, end) in the scratch, nodes of one level of the trees or bins, by
** coordinates. Each cell has `bins` of them, and the first one is coordinate `first` of the
** cell. */
static void locate(struct vector_sum *vectors, size_t start, size_t end, uint32_t bins,
                   size_t first) {
  size_t *places = vectors->scratch.places, width = (size_t)vectors->shape->width;
  for (size_t i = start; i < end; i++) {
    uint32_t slot = (uint32_t)places[i];
    places[i] = slot / bins * width + first + slot % bins;
  }
}

/* Computes the counts of the inner nodes above the `count` leaves of one unit, whose slots and
** counts are in the scratch, sorted by slot, so leaves with the same parent are neighbours. The
** slots of a level are numbered through all cells. Each cell has a power of two of them, so a shift
** turns the slot of a node into the slot of its parent in the same cell. Afterwards the scratch
** contains the coordinates and counts of all nodes, leaves first. Returns their number. The
** additions saturate: sums of rows are far from the limit, but sums from a state can reach it. */
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

/* Scales the leaves of each cell down until they are at most `clip` rows, so that all rows of a
** unit have the same weight, wherever they lie. Each level of a cell's tree then has at most the
** norm `clip`, in either norm. Returns whether a cell had more rows. */
static int weigh_leaves(struct vector_sum *vectors, size_t count) {
  const struct layout *shape = vectors->shape;
  const uint32_t *slots = vectors->scratch.slots, bins = (uint32_t)shape->bins;
  int64_t most = (int64_t)(vectors->question.clip * (double)shape->bin_steps);
  int had_more = 0;
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && slots[end] / bins == slots[start] / bins;) end++;
    had_more |= clip_sum(&vectors->scratch.values[start], end - start, most);
  }
  return had_more;
}

/* Marks the cells of the unit's `count` slots as kept, for private keys. In histograms and trees,
** where the slots are sorted, also adds a count of 1 for each of these cells to the scratch, from
** the place `end` on. Returns the number of these counts. */
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

/* Clips the counts that select private keys, which are the first components of `count` cells. Most
** units have one row in each key. Such counts only depend on their number, so the result is
** stored. */
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

static int add_to_household(struct vector_sum *vectors, const size_t *places, size_t count) {
  struct identity household = identity_integer(vectors->household);
  const int128 *values = vectors->scratch.values;
  int added = 1;
  for (size_t i = 0; i < count && added; i++)
    added = partitioned_sums_add(vectors->shared, household, (uint32_t)places[i],
                                 &values[i * (size_t)vectors->components]);
  return added;
}

/* Returns the sum of the magnitudes of `count` numbers in the scratch, each at most what the layout
** allows in a cell, for the ladder (layout.h). Saturates, whatever the order. */
static double size_of(const struct vector_sum *vectors, size_t count) {
  const struct layout *shape = vectors->shape;
  int128 sum = 0;
  if (!(shape->ladder.most > 0)) return 0;
  for (size_t i = 0; i < count; i++) {
    int128 value = vectors->scratch.values[i];
    if (shape->each) value = lattice_clamp(value, -shape->each, shape->each);
    sum = lattice_add(sum, (int128)lattice_magnitude(value));
  }
  return (double)sum;
}

/* Adds a unit to the tally. Returns 0 when out of memory. */
static int note_unit(struct vector_sum *vectors, int clipped, double before, double after) {
  const struct ladder *ladder = &vectors->shape->ladder;
  if (!ladder->steps) return 1; /* nothing is diagnosed */
  return tally_note(&vectors->tally, vectors->tallies,
                    vectors->tallies ? vectors->household : HOUSEHOLD_NONE, ladder, clipped, before,
                    after);
}

/* The counts that only select private keys do not matter for the tally. */
static int add_matrix(struct vector_sum *vectors, size_t count, int clipped) {
  const struct layout *shape = vectors->shape;
  struct scratch *scratch = &vectors->scratch;
  size_t components = (size_t)vectors->components, end = count, counts = 0;
  size_t scaled = shape->family->has_bins ? 1 : (size_t)shape->width;
  for (size_t i = 0; i < count; i++) scratch->places[i] = scratch->slots[i] * scaled;
  if (shape->tree.levels) {
    clipped |= weigh_leaves(vectors, count);
    end = climb(vectors, count);
  } else if (shape->family->has_bins) {
    locate(vectors, 0, count, (uint32_t)shape->bins, (size_t)shape->selects);
  }
  if (shape->cells == 0) counts = keep_cells(vectors, count, end);
  double before = size_of(vectors, end * components);
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
  if (!note_unit(vectors, clipped, before, size_of(vectors, end * components))) return 0;
  if (vectors->household != HOUSEHOLD_NONE) return add_to_household(vectors, scratch->places, end);
  for (size_t i = 0; i < end + counts; i++) {
    int128 *total = &vectors->totals[scratch->places[i]];
    for (size_t j = 0; j < components; j++) total[j] += scratch->values[i * components + j];
  }
  return 1;
}

/* The values wait until the processor has fetched the totals. */
static void add_late(struct vector_sum *vectors, size_t count) {
  const struct scratch *scratch = &vectors->scratch;
  size_t components = (size_t)vectors->components;
  for (size_t i = 0; i < count; i++) {
    if (vectors->late_count == LATE) vector_late_add(vectors);
    struct late *late = &vectors->late[vectors->late_count++];
    late->total = &vectors->totals[scratch->slots[i] * components];
    __builtin_prefetch(late->total, 1);
    for (size_t j = 0; j < components; j++) late->values[j] = scratch->values[i * components + j];
  }
}

/* Finds the cells of the full table that the slots in the scratch stand for. */
static void find_full(struct vector_sum *vectors, size_t count) {
  for (size_t i = 0; i < count; i++)
    vectors->full_list[i] = full_cells_cell(vectors->full, (int)vectors->scratch.slots[i]);
}

/* The same for the rows of `count` cells of the full table (V4). */
static int add_to_full(struct vector_sum *vectors, size_t count, int clipped) {
  struct scratch *scratch = &vectors->scratch;
  size_t numbers = count * (size_t)vectors->components;
  double before = size_of(vectors, numbers);
  find_full(vectors, count);
  if (!cross_sums_clip(vectors->tables, vectors->full_list, scratch->values, count, &clipped))
    return 0;
  if (!note_unit(vectors, clipped, before, size_of(vectors, numbers))) return 0;
  if (vectors->household != HOUSEHOLD_NONE) {
    for (size_t i = 0; i < count; i++) scratch->places[i] = scratch->slots[i];
    return add_to_household(vectors, scratch->places, count);
  }
  add_late(vectors, count);
  return 1;
}

int vector_totals_add(struct vector_sum *vectors, size_t count, int clipped) {
  return vectors->full ? add_to_full(vectors, count, clipped) : add_matrix(vectors, count, clipped);
}

/* ---- households (V5) ------------------------------------------------------------------------- */

static int join_household(void *context, struct identity household, uint32_t place,
                          const int128 *values) {
  return partitioned_sums_add(context, household, place, values);
}

int vector_households_join(struct vector_sum *vectors, struct vector_sum *others) {
  return partitioned_sums_each(others->shared, join_household, vectors->shared) &&
         (!vectors->tallies ||
          partitioned_sums_each(others->tallies, join_household, vectors->tallies));
}

/* Notes a household that was scaled down. All of them count as whole before (tally_bound()). */
static void note_household(struct vector_sum *vectors, int was_clipped) {
  vectors->tally.households_clipped += was_clipped;
  vectors->tally.households_whole -= was_clipped;
}

/* Bounds the sum of a household and adds it to the totals. */
static int take_household(void *context, const record_word *const *list, size_t count) {
  struct vector_sum *vectors = context;
  const struct layout *shape = vectors->shape;
  size_t components = (size_t)vectors->components;
  if (!vector_scratch_reserve(vectors, count)) return 0;
  struct scratch *scratch = &vectors->scratch;
  for (size_t i = 0; i < count; i++) scratch->slots[i] = record_cell(list[i]);
  record_values(vectors->shared, list, count, scratch->values);
  if (vectors->full) {
    int fits;
    find_full(vectors, count);
    if (!cross_sums_project(vectors->tables, vectors->full_list, scratch->values, count,
                            shape->wide, vectors->cut, &fits))
      return 0;
    note_household(vectors, !fits);
    if (fits) add_late(vectors, count);
    return 1;
  }
  note_household(vectors, household_project(scratch->values, count * components, shape->wide,
                                            !shape->family->is_linear));
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < components; j++)
      vectors->totals[scratch->slots[i] + j] += scratch->values[i * components + j];
  return 1;
}

int vector_households_add(struct vector_sum *vectors) {
  return !vectors->households ||
         (partitioned_sums_each_unit(vectors->shared, take_household, vectors) &&
          (!vectors->tallies ||
           tally_bound(&vectors->tally, vectors->tallies, &vectors->shape->ladder)));
}

/* ---- the keys that a unit keeps (V3) --------------------------------------------------------- */

#define FEW 24 /* number of items from which on qsort() is faster than insertion */

static int by_order(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Sorts items. Most units have few, for which insertion is faster than qsort(). */
static void sort(struct item *items, size_t count) {
  if (count > FEW) {
    qsort(items, count, sizeof *items, by_order);
    return;
  }
  for (size_t i = 1; i < count; i++) {
    struct item item = items[i];
    size_t at = i;
    for (; at > 0 && by_order(&items[at - 1], &item) > 0; at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

static size_t cell_of(const struct item *item, const struct layout *shape) {
  return item->slot / (size_t)shape->bins;
}

/* Sets the order of every item: the keyed hash of the unit and the key. */
static void set_orders(struct item *items, size_t count, const struct layout *shape,
                       const struct group_keys *cells, const struct secret *secret,
                       struct identity unit) {
  for (size_t i = 0; i < count; i++) {
    uint64_t key = group_keys_hash(cells, (int)cell_of(&items[i], shape));
    items[i].order = identity_mix(secret, unit, key);
  }
}

/* Moves the first `most` items, in any order, to the front. Among the items that are kept so far,
** items[last] is the last. Most other items are not moved, because `order` is random. */
static void keep_items(struct item *items, size_t count, size_t most) {
  size_t last = 0;
  for (size_t i = most; i-- > 0;) last = items[i].order > items[last].order ? i : last;
  for (size_t i = most; i < count; i++) {
    if (items[i].order >= items[last].order) continue;
    items[last] = items[i];
    for (size_t j = 0; j < most; j++) last = items[j].order > items[last].order ? j : last;
  }
}

static size_t count_keys(const struct item *items, size_t count, const struct layout *shape) {
  size_t keys = 1;
  for (size_t i = 1; i < count; i++)
    keys += cell_of(&items[i], shape) != cell_of(&items[i - 1], shape);
  return keys;
}

/* Sorts the items by order, and those of one key by slot. Returns the number of items of the first
** `most` keys. */
static size_t keep_bins(struct item *items, size_t count, const struct layout *shape, size_t most) {
  size_t kept = 0;
  sort(items, count);
  for (size_t keys = 0; kept < count; kept++) {
    keys += kept == 0 || cell_of(&items[kept], shape) != cell_of(&items[kept - 1], shape);
    if (keys > most) break;
  }
  return kept;
}

/* Moves the records of the first max_groups keys, in the order of a keyed hash of unit and key, to
** the front and returns their number. If cells have bins, also sorts these records by slot. */
static size_t first_keys(struct item *items, size_t count, const struct layout *shape,
                         const struct group_keys *cells, const struct secret *secret,
                         struct identity unit) {
  size_t most = (size_t)shape->max_groups;
  int is_limited = most > 0 && count > most;
  if (shape->bins == 1) {
    if (!is_limited) return count;
    set_orders(items, count, shape, cells, secret, unit);
    keep_items(items, count, most);
    return most;
  }
  sort(items, count);
  if (!is_limited || count_keys(items, count, shape) <= most) return count;
  set_orders(items, count, shape, cells, secret, unit);
  count = keep_bins(items, count, shape, most);
  for (size_t i = 0; i < count; i++) items[i].order = 0;
  sort(items, count);
  return count;
}

/* Writes the records that a unit keeps to the scratch. Returns their number. */
static size_t choose(struct vector_sum *vectors, struct identity unit,
                     const record_word *const *list, size_t count) {
  struct scratch *scratch = &vectors->scratch;
  for (size_t i = 0; i < count; i++)
    scratch->items[i] = (struct item){0, record_cell(list[i]), list[i]};
  count = first_keys(scratch->items, count, vectors->shape, vectors->cells, &vectors->secret, unit);
  for (size_t i = 0; i < count; i++) scratch->chosen[i] = scratch->items[i].record;
  return count;
}

int vector_totals_unit(void *context, const record_word *const *list, size_t count) {
  struct vector_sum *vectors = context;
  const struct layout *shape = vectors->shape;
  if (!vector_scratch_reserve(vectors, count)) return 0;
  struct scratch *scratch = &vectors->scratch;
  struct identity unit = record_unit(vectors->records, list[0]);
  size_t kept = count;
  if (shape->bins > 1 || (shape->max_groups && count > (size_t)shape->max_groups)) {
    kept = choose(vectors, unit, list, count);
    list = scratch->chosen;
  }
  for (size_t i = 0; i < kept; i++) scratch->slots[i] = record_cell(list[i]);
  record_values(vectors->records, list, kept, scratch->values);
  int64_t number;
  const struct vector_sum *first = vectors->first ? vectors->first : vectors;
  if (vectors->households) vectors->household = households_find(vectors->households, unit);
  int outside = shape->diagnoses && unit_table_get(&first->outsides, unit, &number);
  return vector_totals_add(vectors, kept, kept < count || outside);
}
