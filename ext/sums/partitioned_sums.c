/* partitioned_sums.c: see internal.h. In the end all records of a unit are in one store.
** Tests: tests/sums/test_partitioned_sums.c, tests/sums/test_vector_sum.c,
** tests/mechanism/test_groups.py */
#include "sums/internal.h"

#include <stdlib.h>

/* ---- rows of some buckets, by unit ----------------------------------------------------------- */

/* The rows of some buckets, grouped by unit. All rows of these units are in these buckets, which
** may belong to several stores with rows of the same form.
**
** A first pass over the rows gives a number to each unit and counts its rows. A second pass writes
** the addresses of the rows into a list, ordered by these numbers. Then the rows of each unit are
** merged into one record for each cell. The hash tables of these steps hold the units of these
** buckets or the cells of one unit, and are so small that they stay in the fastest caches. */

/* A unit, whose records are list[first], ..., list[end - 1]. */
struct unit_group {
  struct identity unit;
  uint32_t first, end;
};

struct unit_groups {
  struct bucket **buckets;
  size_t bucket_count, bucket_room;
  struct unit_group *groups;
  size_t count;
  record_word **list;
  uint32_t *numbers; /* the number of the unit of each row */
  size_t row_room;   /* number of rows for which the two arrays above have room */
  uint32_t *index;   /* a hash table of the units; a slot holds a number plus 1, or 0 */
  size_t slots, slot_room;
};

#define LEAST_SLOTS ((size_t)64)
#define SPARSE      4 /* the index has at least this number of slots for each unit */

static void unit_groups_close(struct unit_groups *groups) {
  free(groups->buckets);
  free(groups->groups);
  free(groups->list);
  free(groups->numbers);
  free(groups->index);
}

/* Adds a bucket to those that unit_groups_make() groups next. Returns 0 if memory runs out. */
static int unit_groups_bucket(struct unit_groups *groups, struct bucket *bucket) {
  struct bucket **buckets = chunks_grown(groups->buckets, sizeof(struct bucket *),
                                         groups->bucket_count, &groups->bucket_room);
  if (!buckets) return 0;
  groups->buckets = buckets;
  buckets[groups->bucket_count++] = bucket;
  return 1;
}

static int reserve_rows(struct unit_groups *groups, size_t rows) {
  if (rows <= groups->row_room) return 1;
  size_t room = rows + rows / 4;
  record_word **list = realloc(groups->list, sizeof *list * room);
  if (list) groups->list = list;
  uint32_t *numbers = realloc(groups->numbers, sizeof *numbers * room);
  if (numbers) groups->numbers = numbers;
  if (!list || !numbers) return 0;
  groups->row_room = room;
  return 1;
}

/* Returns the slot of a unit, or the empty slot for it. */
static inline uint32_t *slot_of(const struct unit_groups *groups, const struct secret *secret,
                                struct identity unit) {
  uint64_t mask = groups->slots - 1, at = identity_mix(secret, unit, 0) & mask;
  uint32_t number;
  while ((number = groups->index[at]) && !identity_same(groups->groups[number - 1].unit, unit))
    at = (at + 1) & mask;
  return &groups->index[at];
}

/* Gives the index `slots` slots and enters all units. Returns 1, or 0 if memory runs out. */
static int resize_index(struct unit_groups *groups, const struct secret *secret, size_t slots) {
  if (slots > groups->slot_room) {
    uint32_t *index = realloc(groups->index, sizeof *index * slots);
    if (index) groups->index = index;
    struct unit_group *grown = realloc(groups->groups, sizeof *grown * (slots / SPARSE));
    if (grown) groups->groups = grown;
    if (!index || !grown) return 0;
    groups->slot_room = slots;
  }
  groups->slots = slots;
  memset(groups->index, 0, sizeof *groups->index * slots);
  for (size_t i = 0; i < groups->count; i++)
    *slot_of(groups, secret, groups->groups[i].unit) = (uint32_t)i + 1;
  return 1;
}

/* Gives a number to each unit of a bucket, and counts its rows in `end`. numbers[i] becomes the
** number of the unit of row i. Returns 0 if memory runs out. */
static int number_units(struct unit_groups *groups, const struct row_store *store,
                        const struct bucket *bucket, uint32_t *numbers) {
  size_t rows = rows_of(store, bucket);
  for (size_t i = 0; i < rows; i++) {
    if (!(i & (chunk_rows(store) - 1))) row_store_prefetch(bucket, (i >> store->chunk_shift) + 1);
    struct identity unit = unit_of_row(store, row_at(store, bucket, i));
    uint32_t *slot = slot_of(groups, store->secret, unit);
    if (!*slot) {
      if (groups->count == groups->slots / SPARSE) {
        if (!resize_index(groups, store->secret, 2 * groups->slots)) return 0;
        slot = slot_of(groups, store->secret, unit);
      }
      groups->groups[groups->count] = (struct unit_group){unit, 0, 0};
      *slot = (uint32_t)++groups->count;
    }
    numbers[i] = *slot - 1;
    groups->groups[*slot - 1].end++;
  }
  return 1;
}

/* Gives each unit as many places of the list as it has rows. The places begin at `end`. */
static void place_units(struct unit_groups *groups) {
  uint32_t end = 0;
  for (size_t i = 0; i < groups->count; i++) {
    struct unit_group *group = &groups->groups[i];
    uint32_t count = group->end;
    group->first = group->end = end;
    end += count;
  }
}

/* Writes the addresses of a bucket's rows to the places of their units in the list. */
static void list_rows(struct unit_groups *groups, const struct row_store *store,
                      const struct bucket *bucket, const uint32_t *numbers) {
  size_t rows = rows_of(store, bucket);
  for (size_t i = 0; i < rows; i++)
    groups->list[groups->groups[numbers[i]].end++] = row_at(store, bucket, i);
}

/* Merges the `count` rows of a unit into one record for each cell, with which the list then begins.
** Returns their number. A slot of the store's index holds the number of a record plus 1, or 0.
**
** A cell is multiplied by a secret odd number, and the upper bits of the product choose the slot,
** so nobody can choose keys that collide. */
static size_t merge_unit(struct row_store *store, record_word **list, size_t count) {
  if (count < 2) return count;
  size_t kept = 0;
  int bits = 2;
  while ((size_t)1 << bits < 2 * count) bits++;
  uint32_t *index = memset(store->index, 0, sizeof *index << bits);
  uint64_t mask = ((uint64_t)1 << bits) - 1, factor = secret_word(store->secret, 2) | 1;
  for (size_t i = 0; i < count; i++) {
    record_word *row = list[i];
    uint64_t at = row[0] * factor >> (64 - bits);
    while (index[at] && list[index[at] - 1][0] != row[0]) at = (at + 1) & mask;
    if (index[at]) {
      row_store_merge(store, list[index[at] - 1], row);
    } else {
      list[kept] = row;
      index[at] = (uint32_t)++kept;
    }
  }
  return kept;
}

/* Groups and merges the rows of the buckets, and then forgets the buckets. Rows that were merged
** into another row stay in their bucket with values of 0, so that the sums do not change. `store`
** has rows of the same form, and may get rows in its wide store. Returns 0 if memory runs out. */
static int unit_groups_make(struct unit_groups *groups, struct row_store *store) {
  size_t count = groups->bucket_count, rows = 0, settled = 0;
  for (size_t i = 0; i < count; i++) rows += rows_of(store, groups->buckets[i]);
  if (count == 1) settled = groups->buckets[0]->settled; /* all records of different pairs */
  groups->count = groups->bucket_count = 0;
  store->last = 0; /* merging changes rows */
  if (!row_store_reserve(store, rows) || !reserve_rows(groups, rows) ||
      !resize_index(groups, store->secret, LEAST_SLOTS))
    return 0;
  uint32_t *numbers = groups->numbers;
  for (size_t i = 0; i < count; numbers += rows_of(store, groups->buckets[i++]))
    if (!number_units(groups, store, groups->buckets[i], numbers)) return 0;
  place_units(groups);
  numbers = groups->numbers;
  for (size_t i = 0; i < count; numbers += rows_of(store, groups->buckets[i++]))
    list_rows(groups, store, groups->buckets[i], numbers);
  for (size_t i = 0; i < groups->count && rows > settled; i++) {
    struct unit_group *group = &groups->groups[i];
    size_t size = group->end - group->first;
    group->end = group->first + (uint32_t)merge_unit(store, &groups->list[group->first], size);
  }
  return !*store->failed;
}

/* ---- all rows -------------------------------------------------------------------------------- */

#define BATCH      64
#define FEW_VALUES 4 /* largest number of values of a row that waits in the batch */

enum { SMALL, INTEGERS, OTHERS, WIDE, STORES };

/* A row that waits in the batch. Each row goes to one of hundreds of buckets, whose memory is not
** in the fastest cache. Rows wait so that the processor prefetches the memory of many rows at
** once. */
struct waiting {
  struct row_store *store;
  uint64_t place;
  struct identity unit;
  uint32_t cell;
  int64_t values[FEW_VALUES];
};

struct partitioned_sums {
  const struct secret *secret;
  int components;
  int64_t count_steps;
  int failed; /* memory ran out and rows were lost; stays set */
  struct row_store stores[STORES];
  const struct row_store *taken; /* the store whose records are passed to the caller's function */
  struct unit_groups groups;
  expect_unit *expect;   /* or null */
  const void *expecting; /* its context */
  int128 *values;        /* the values of one record */
  int64_t *narrow;       /* the values of one row */
  int waiting;
  struct waiting batch[BATCH];
};

/* ---- opening --------------------------------------------------------------------------------- */

struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components,
                                               int64_t count_steps) {
  struct partitioned_sums *records = calloc(1, sizeof *records);
  if (!records) return 0;
  records->secret = secret;
  records->components = components;
  records->count_steps = count_steps;
  records->values = calloc((size_t)components, sizeof *records->values);
  records->narrow = calloc((size_t)components, sizeof *records->narrow);
  static const size_t unit_words[STORES] = {1, 2, 4, 4};
  struct row_store *wide = &records->stores[WIDE];
  int is_open = records->values && records->narrow;
  for (int i = 0; i < STORES && is_open; i++)
    is_open = row_store_open(&records->stores[i], secret, components, count_steps, unit_words[i],
                             i == WIDE ? 0 : wide, &records->failed);
  if (is_open) return records;
  partitioned_sums_close(records);
  return 0;
}

void partitioned_sums_close(struct partitioned_sums *records) {
  if (!records) return;
  for (int i = 0; i < STORES; i++) row_store_close(&records->stores[i]);
  unit_groups_close(&records->groups);
  free(records->values);
  free(records->narrow);
  free(records);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static struct row_store *narrow_store(struct partitioned_sums *records, struct identity unit) {
  if (unit.kind != IDENTITY_INTEGER) return &records->stores[OTHERS];
  return &records->stores[unit.low >> 32 ? INTEGERS : SMALL];
}

/* Adds the rows of the batch to their stores, after the processor has begun to prefetch the memory
** for all of them. Returns 1, or 0 if memory ran out in this or an earlier call. */
static int flush(struct partitioned_sums *records) {
  struct waiting *batch = records->batch;
  for (int i = 0; i < records->waiting; i++) {
    batch[i].store = narrow_store(records, batch[i].unit);
    batch[i].place = row_store_place(batch[i].store, batch[i].unit);
    row_store_expect(batch[i].store, batch[i].place);
  }
  for (int i = 0; i < records->waiting; i++)
    row_store_add(batch[i].store, batch[i].place, batch[i].unit, batch[i].cell, batch[i].values);
  records->waiting = 0;
  return !records->failed;
}

int partitioned_sums_add_narrow(struct partitioned_sums *records, struct identity unit,
                                uint32_t cell, const int64_t *values) {
  if (records->components > FEW_VALUES) {
    /* Rows with many values are not worth a second copy, so they do not wait in the batch. */
    struct row_store *store = narrow_store(records, unit);
    row_store_add(store, row_store_place(store, unit), unit, cell, values);
    return !records->failed;
  }
  struct waiting *row = &records->batch[records->waiting];
  row->unit = unit;
  row->cell = cell;
  for (int i = 0; i < records->components; i++) row->values[i] = values[i];
  return (++records->waiting < BATCH || flush(records)) && !records->failed;
}

/* Sets *count to the count of this value, and returns whether it is one below MOST_COUNT. */
static int count_of(const struct partitioned_sums *records, int128 steps, int64_t *count) {
  int64_t each = records->count_steps;
  *count = 1;
  if (steps == each) return 1;
  if (steps < 0 || steps >= (int128)each * MOST_COUNT || steps % each != 0) return 0;
  *count = (int64_t)(steps / each);
  return 1;
}

/* Writes values to records->narrow. Returns whether they fit a narrow row. */
static int fit(struct partitioned_sums *records, const int128 *values) {
  int i = 0;
  if (records->count_steps && !count_of(records, values[i++], &records->narrow[0])) return 0;
  for (; i < records->components; i++) {
    if (values[i] > MOST_VALUE || values[i] < -MOST_VALUE) return 0;
    records->narrow[i] = (int64_t)values[i];
  }
  return 1;
}

int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values) {
  if (fit(records, values))
    return partitioned_sums_add_narrow(records, unit, cell, records->narrow);
  row_store_add_wide(&records->stores[WIDE], unit, cell, values);
  return !records->failed;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void settle_all(struct partitioned_sums *records, struct row_store *store) {
  for (size_t i = 0; i < store->count && !records->failed; i++)
    if (!row_store_settle(store, &store->buckets[i])) records->failed = 1;
}

/* Enters every unit of the wide store into the table `units`. Returns 0 if memory runs out. */
static int list_wide(const struct partitioned_sums *records, struct unit_table *units) {
  const struct row_store *store = &records->stores[WIDE];
  for (size_t i = 0; i < store->count; i++) {
    const struct bucket *bucket = &store->buckets[i];
    for (size_t j = 0; j < rows_of(store, bucket); j++) {
      struct identity unit = unit_of_row(store, row_at(store, bucket, j));
      if (unit_table_add(units, unit, 0) && !unit_table_flush(units, 0, 0)) return 0;
    }
  }
  return unit_table_flush(units, 0, 0);
}

/* Moves all records of the units in the table `units` from a narrow store to the wide store. */
static void carry_units(struct partitioned_sums *records, struct row_store *store,
                        const struct unit_table *units) {
  for (size_t i = 0; i < store->count; i++) {
    struct bucket *bucket = &store->buckets[i];
    size_t kept = 0;
    for (size_t j = 0; j < bucket->settled && !records->failed; j++) {
      record_word *row = row_at(store, bucket, j);
      int64_t unused;
      if (unit_table_get(units, unit_of_row(store, row), &unused)) {
        row_store_carry(store, row);
      } else {
        if (kept < j) copy_row(store, row_at(store, bucket, kept), row);
        kept++;
      }
    }
    if (records->failed) return;
    records->failed |= !row_store_keep(store, bucket, kept);
  }
}

/* Merges the rows of every pair, and moves all records of each unit into one store. */
static int gather(struct partitioned_sums *records) {
  struct row_store *stores = records->stores;
  for (int i = 0; i < WIDE; i++) settle_all(records, &stores[i]);
  if (!row_store_is_empty(&stores[WIDE]) && !records->failed) {
    struct unit_table units;
    if (!unit_table_open(&units, records->secret, 0)) {
      records->failed = 1;
      return 0;
    }
    records->failed |= !list_wide(records, &units);
    for (int i = 0; i < WIDE && !records->failed; i++) carry_units(records, &stores[i], &units);
    settle_all(records, &stores[WIDE]);
    unit_table_close(&units);
  }
  return !records->failed;
}

/* Returns 1 once, as soon as the wide store has a row. Then gather() must be called before the next
** record is taken. The units of the buckets before have no wide rows, because all records of a unit
** are in one bucket. */
static int needs_gathering(const struct partitioned_sums *records, int *is_gathered) {
  if (records->failed || *is_gathered || row_store_is_empty(&records->stores[WIDE])) return 0;
  *is_gathered = 1;
  return 1;
}

/* Merges the rows of a bucket just before its records are read, while they are in the cache. */
static int prepare(struct partitioned_sums *records, struct row_store *store, struct bucket *bucket,
                   int *is_gathered) {
  if (!row_store_settle(store, bucket)) records->failed = 1;
  if (needs_gathering(records, is_gathered)) return gather(records);
  return !records->failed;
}

int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context) {
  int is_gathered = 0;
  if (!flush(records)) return 0;
  for (int i = 0; i < STORES; i++) {
    struct row_store *store = &records->stores[i];
    for (size_t j = 0; j < store->count; j++) {
      struct bucket *bucket = &store->buckets[j];
      if (!prepare(records, store, bucket, &is_gathered)) return 0;
      for (size_t k = 0; k < bucket->settled; k++) {
        const record_word *row = row_at(store, bucket, k);
        row_store_values(store, &row, 1, records->values);
        if (!take(context, unit_of_row(store, row), record_cell(row), records->values)) return 0;
      }
    }
  }
  return 1;
}

/* ---- by unit --------------------------------------------------------------------------------- */

struct identity record_unit(const struct partitioned_sums *records, const record_word *record) {
  return unit_of_row(records->taken, record);
}

void record_values(const struct partitioned_sums *records, const record_word *const *list,
                   size_t count, int128 *values) {
  row_store_values(records->taken, list, count, values);
}

/* A unit with very many rows fits no cache: it is faster to merge all rows of its bucket at
** once. */
static int settle_large(struct row_store *store, struct bucket *bucket) {
  return rows_of(store, bucket) <= store->full || row_store_settle(store, bucket);
}

void partitioned_sums_expect(struct partitioned_sums *records, expect_unit *expect,
                             const void *context) {
  records->expect = expect;
  records->expecting = context;
}

#define AHEAD 8 /* units from expect() to take() */

/* Calls `take` for each record of a settled bucket. With only one cell, each record is a unit. */
static int take_records(const struct partitioned_sums *records, const struct row_store *store,
                        const struct bucket *bucket, take_unit *take, void *context) {
  for (size_t i = 0; i < bucket->settled; i++) {
    const record_word *record = row_at(store, bucket, i);
    if (records->expect && i + AHEAD < bucket->settled)
      records->expect(records->expecting, unit_of_row(store, row_at(store, bucket, i + AHEAD)));
    if (!take(context, &record, 1)) return 0;
  }
  return 1;
}

static int group_units(struct unit_groups *groups, struct row_store *store, struct bucket *bucket) {
  return settle_large(store, bucket) && unit_groups_bucket(groups, bucket) &&
         unit_groups_make(groups, store);
}

static int take_groups(struct partitioned_sums *records, take_unit *take, void *context) {
  const struct unit_groups *groups = &records->groups;
  for (size_t i = 0; i < groups->count && !records->failed; i++) {
    const struct unit_group *group = &groups->groups[i];
    const record_word *const *list = (const record_word *const *)&groups->list[group->first];
    if (records->expect && i + AHEAD < groups->count)
      records->expect(records->expecting, group[AHEAD].unit);
    if (!take(context, list, group->end - group->first)) return 0;
  }
  return !records->failed;
}

static int take_bucket(struct partitioned_sums *records, struct row_store *store,
                       struct bucket *bucket, int *is_gathered, take_unit *take, void *context) {
  struct unit_groups *groups = &records->groups;
  records->failed = records->failed || !group_units(groups, store, bucket);
  if (needs_gathering(records, is_gathered) && gather(records))
    records->failed = !group_units(groups, store, bucket);
  return take_groups(records, take, context);
}

int partitioned_sums_each_unit(struct partitioned_sums *records, take_unit *take, void *context) {
  int is_gathered = 0;
  if (!flush(records)) return 0;
  for (int i = 0; i < STORES; i++) {
    struct row_store *store = &records->stores[i];
    records->taken = store;
    for (size_t j = 0; j < store->count; j++) {
      struct bucket *bucket = &store->buckets[j];
      int going = store->cells ? take_bucket(records, store, bucket, &is_gathered, take, context)
                               : prepare(records, store, bucket, &is_gathered) &&
                                     take_records(records, store, bucket, take, context);
      if (!going) return 0;
    }
  }
  return 1;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Returns the place after those that begin with the same `depth` bits, or 0 after the last. */
static uint64_t next_place(uint64_t place, int depth) {
  return depth ? place + ((uint64_t)1 << (64 - depth)) : 0;
}

int partitioned_sums_end(struct partitioned_sums *records) {
  if (!flush(records)) return 0;
  for (int i = 0; i < STORES; i++) {
    struct row_store *store = &records->stores[i];
    for (size_t j = 0; j < store->count; j++)
      if (!settle_large(store, &store->buckets[j])) return 0;
  }
  return 1;
}

void partitioned_sums_translate(struct partitioned_sums *records, const int *cells, uint32_t bins) {
  for (int i = 0; i < STORES; i++) {
    struct row_store *store = &records->stores[i];
    for (size_t j = 0; j < store->count; j++) {
      const struct bucket *bucket = &store->buckets[j];
      for (size_t k = 0; k < rows_of(store, bucket); k++) {
        record_word *row = row_at(store, bucket, k);
        row[0] = (record_word)cells[row[0] / bins] * bins + row[0] % bins;
      }
    }
  }
}

/* Adds the parts of a store: as many as all vectors have buckets with whole parts. */
static int list_parts(struct partitioned_sums *const *list, int count, int store,
                      struct record_parts *parts) {
  uint64_t place = 0;
  do {
    int depth = 64;
    size_t rows = 0;
    for (int i = 0; i < count; i++) {
      const struct row_store *own = &list[i]->stores[store];
      const struct bucket *bucket = row_store_bucket(own, place);
      if (bucket->depth < depth) depth = bucket->depth;
      rows += (size_t)own->count > 1 || rows_of(own, bucket);
    }
    struct record_part *grown =
        chunks_grown(parts->list, sizeof *grown, parts->count, &parts->room);
    if (!grown) return 0;
    parts->list = grown;
    if (rows) grown[parts->count++] = (struct record_part){store, depth, place};
    place = next_place(place, depth);
  } while (place);
  return 1;
}

int partitioned_sums_parts(struct partitioned_sums *const *list, int count,
                           struct record_parts *parts) {
  int has_wide = 0;
  for (int i = 0; i < count; i++) has_wide |= !row_store_is_empty(&list[i]->stores[WIDE]);
  if (has_wide) return 1;
  for (int i = 0; i < WIDE; i++)
    if (!list_parts(list, count, i, parts)) return 0;
  return 1;
}

static int list_buckets(struct unit_groups *groups, struct partitioned_sums *const *list, int count,
                        const struct record_part *part) {
  uint64_t end = next_place(part->place, part->depth);
  for (int i = 0; i < count; i++) {
    uint64_t place = part->place;
    do {
      struct bucket *bucket = row_store_bucket(&list[i]->stores[part->store], place);
      if (!unit_groups_bucket(groups, bucket)) return 0;
      place = next_place(place, bucket->depth);
    } while (place != end);
  }
  return 1;
}

enum sums_added partitioned_sums_take_part(struct partitioned_sums *records,
                                           struct partitioned_sums *const *list, int count,
                                           const struct record_part *part, take_unit *take,
                                           void *context) {
  struct row_store *store = &records->stores[part->store];
  records->taken = store;
  if (!list_buckets(&records->groups, list, count, part) ||
      !unit_groups_make(&records->groups, store))
    return SUMS_FAILED;
  if (!row_store_is_empty(&records->stores[WIDE])) return SUMS_WIDE;
  return take_groups(records, take, context) ? SUMS_ADDED : SUMS_FAILED;
}
