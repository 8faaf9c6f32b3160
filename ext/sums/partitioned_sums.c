/*
** partitioned_sums.c: see partitioned_sums.h.
**
** There are two stores of buckets. The narrow store has values of 64 bits. The wide store has
** values of 128 bits, and is opened when a value does not fit 64 bits. In the end all records of a
** unit are in one of the two stores.
*/
#include "sums/partitioned_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sums/unit_table.h"

#define MOST        ((int64_t)1 << 61) /* bound on a narrow value between two additions */
#define LEAST_WORDS 4                  /* least number of words of a row */
/* Number of rows of the first bucket. It is not a power of two (see resize()). */
#define FIRST_ROOM 67
/* Buckets with fewer words than this are doubled, not split. */
#define BUCKET_WORDS ((size_t)1 << 17)
/* Buckets with fewer rows than this are doubled, not split. */
#define BUCKET_ROOM 128
#define LINE        64 /* bytes of a cache line */
#define MOST_DEPTH  31
#define MOST_ROOM   ((size_t)1 << 31)

struct bucket {
  record_word *rows, *next, *end; /* between two calls there is room for at least one more row */
  /* The first `settled` rows are already merged into one record for each pair of unit and cell. */
  size_t settled;
  int depth; /* number of leading bits in which the places of its units agree */
};

struct store {
  int is_wide;
  size_t words; /* number of words of a row */
  int depth;    /* number of bits of a place that choose a bucket */
  /*
  ** 2^depth entries, each of which is an index into `buckets`. Several neighbouring entries may
  ** name the same bucket. Null if the store is not open.
  */
  uint32_t *directory;
  struct bucket *buckets;
  size_t count, room;       /* used and allocated elements of `buckets` */
  uint32_t *index;          /* a hash table of one bucket's records, used during a lookup */
  uint32_t *links;          /* for each record, the next record of the same unit */
  const record_word **list; /* the records of one unit */
  size_t most;              /* number of rows for which the three arrays above have room */
};

struct partitioned_sums {
  const struct secret *secret;
  int components, with_cells;
  int failed; /* memory ran out and rows were lost; stays set */
  struct store narrow, wide;
  const struct store *taken; /* the store whose records are passed to the caller's function */
  int128 *values;            /* the values of one record */
};

/* ---- rows ------------------------------------------------------------------------------------ */

struct identity record_unit(const record_word *row) {
  return (struct identity){row[0], row[1]};
}

uint32_t record_cell(const struct partitioned_sums *records, const record_word *row) {
  return records->with_cells ? (uint32_t)row[2] : 0;
}

static int is_wide(const struct partitioned_sums *records) {
  return records->wide.directory != 0;
}

static size_t first_value(const struct partitioned_sums *records) {
  return records->with_cells ? 3 : 2;
}

static void get_values(const struct partitioned_sums *records, const struct store *store,
                       const record_word *row, int128 *values) {
  row += first_value(records);
  for (size_t i = 0; i < (size_t)records->components; i++)
    values[i] = store->is_wide ? (int128)((uint128)row[2 * i + 1] << 64 | row[2 * i])
                               : (int128)(int64_t)row[i];
}

static void set_values(const struct partitioned_sums *records, const struct store *store,
                       record_word *row, const int128 *values) {
  row += first_value(records);
  for (size_t i = 0; i < (size_t)records->components; i++) {
    if (store->is_wide) {
      row[2 * i] = (uint64_t)values[i];
      row[2 * i + 1] = (uint64_t)(values[i] >> 64);
    } else {
      row[i] = (uint64_t)values[i];
    }
  }
}

void record_values(const struct partitioned_sums *records, const record_word *record,
                   int128 *values) {
  get_values(records, records->taken, record, values);
}

static int same_pair(const struct partitioned_sums *records, const record_word *a,
                     const record_word *b) {
  return a[0] == b[0] && a[1] == b[1] && record_cell(records, a) == record_cell(records, b);
}

static uint64_t place_of(const struct partitioned_sums *records, const record_word *row) {
  return identity_mix(records->secret, record_unit(row), 0);
}

/* Copies a row. For most rows the first four assignments are enough. */
static void copy_row(const struct store *store, record_word *to, const record_word *from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
  to[3] = from[3];
  for (size_t i = LEAST_WORDS; i < store->words; i++) to[i] = from[i];
}

/* ---- buckets --------------------------------------------------------------------------------- */

static struct bucket *bucket_for(const struct store *store, uint64_t place) {
  return &store->buckets[store->directory[place >> 1 >> (63 - store->depth)]];
}

static record_word *row_at(const struct store *store, const struct bucket *bucket, size_t i) {
  return bucket->rows + i * store->words;
}

static size_t rows_of(const struct store *store, const struct bucket *bucket) {
  return (size_t)(bucket->next - bucket->rows) / store->words;
}

static size_t room_of(const struct store *store, const struct bucket *bucket) {
  return (size_t)(bucket->end - bucket->rows) / store->words;
}

/*
** Makes `index`, `links` and `list` large enough for a bucket of `room` rows. Returns 1, or 0 if
** memory runs out.
*/
static int reserve(struct store *store, size_t room) {
  if (room <= store->most) return 1;
  if (room > MOST_ROOM) return 0;
  uint32_t *index = realloc(store->index, sizeof *index * 3 * room);
  if (index) store->index = index;
  uint32_t *links = realloc(store->links, sizeof *links * room);
  if (links) store->links = links;
  const record_word **list = realloc(store->list, sizeof *list * room);
  if (list) store->list = list;
  if (!index || !links || !list) return 0;
  store->most = room;
  return 1;
}

/*
** Allocates room for `room` rows in a bucket. `room` should not be a power of two: all buckets fill
** at about the same pace, and the ends of buckets whose sizes are powers of two would compete for
** the same cache lines. Returns 1, or 0 if memory runs out.
*/
static int resize(struct store *store, struct bucket *bucket, size_t room) {
  size_t used = (size_t)(bucket->next - bucket->rows), words = room * store->words;
  if (!reserve(store, room)) return 0;
  size_t more = sizeof *bucket->rows * (words - (size_t)(bucket->end - bucket->rows));
  if (!memory_take(more)) return 0;
  record_word *rows = realloc(bucket->rows, sizeof *rows * words);
  if (!rows) {
    memory_give(more);
    return 0;
  }
  bucket->rows = rows;
  bucket->next = rows + used;
  bucket->end = rows + words;
  return 1;
}

/* Makes another bucket. Returns 0 when out of memory. */
static int open_bucket(struct store *store, size_t room) {
  if (store->count == store->room) {
    size_t more = store->room * 2 + 1;
    struct bucket *buckets = realloc(store->buckets, sizeof *buckets * more);
    if (!buckets) return 0;
    store->buckets = buckets;
    store->room = more;
  }
  struct bucket fresh = {0};
  if (!resize(store, &fresh, room)) return 0;
  store->buckets[store->count++] = fresh;
  return 1;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store_close(struct store *store) {
  for (size_t i = 0; i < store->count; i++) {
    const struct bucket *bucket = &store->buckets[i];
    memory_give((size_t)(bucket->end - bucket->rows) * sizeof *bucket->rows);
    free(bucket->rows);
  }
  free(store->buckets);
  free(store->directory);
  free(store->index);
  free(store->links);
  free(store->list);
  *store = (struct store){0};
}

static int store_open(const struct partitioned_sums *records, struct store *store, int wide) {
  size_t words = first_value(records) + (size_t)records->components * (wide ? 2 : 1);
  if (words < LEAST_WORDS) words = LEAST_WORDS;
  *store = (struct store){.is_wide = wide, .words = words};
  store->directory = calloc(1, sizeof *store->directory);
  if (store->directory && open_bucket(store, FIRST_ROOM)) return 1;
  store_close(store);
  return 0;
}

struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components,
                                               int with_cells) {
  struct partitioned_sums *records = calloc(1, sizeof *records);
  if (!records) return 0;
  *records = (struct partitioned_sums){
      .secret = secret, .components = components, .with_cells = with_cells};
  records->values = calloc((size_t)components, sizeof *records->values);
  if (records->values && store_open(records, &records->narrow, 0)) return records;
  partitioned_sums_close(records);
  return 0;
}

void partitioned_sums_close(struct partitioned_sums *records) {
  if (!records) return;
  store_close(&records->narrow);
  store_close(&records->wide);
  free(records->values);
  free(records);
}

int partitioned_sums_are_none(const struct partitioned_sums *records) {
  const struct store *store = &records->narrow;
  int narrow = store->count > 1 || store->buckets->next > store->buckets->rows;
  return !narrow && !is_wide(records);
}

/* ---- settling -------------------------------------------------------------------------------- */

static void add_row(struct partitioned_sums *records, struct store *store, struct identity unit,
                    uint32_t cell, const int128 *values);

/* Moves a narrow row to the wide store, and resets its values to 0. */
static void carry(struct partitioned_sums *records, record_word *row) {
  get_values(records, &records->narrow, row, records->values);
  memset(row + first_value(records), 0, sizeof *row * (size_t)records->components);
  if (!is_wide(records)) records->failed |= !store_open(records, &records->wide, 1);
  if (!records->failed)
    add_row(records, &records->wide, record_unit(row), record_cell(records, row), records->values);
}

/* Adds the values of the row `from` to the values of the row `to`. */
static void add_values(struct partitioned_sums *records, const struct store *store, record_word *to,
                       const record_word *from) {
  size_t first = first_value(records), end = first + (size_t)records->components;
  if (store->is_wide) {
    for (size_t i = first; i < 2 * end - first; i += 2) {
      int128 a = (int128)((uint128)to[i + 1] << 64 | to[i]);
      int128 sum = lattice_add(a, (int128)((uint128)from[i + 1] << 64 | from[i]));
      to[i] = (uint64_t)sum;
      to[i + 1] = (uint64_t)(sum >> 64);
    }
    return;
  }
  uint64_t beyond = 0;
  for (size_t i = first; i < end; i++) {
    to[i] += from[i];
    beyond |= to[i] + (uint64_t)MOST > 2 * (uint64_t)MOST;
  }
  if (beyond) carry(records, to);
}

/*
** Empties the index and gives it 2^k slots, at least 1.5 times the number of rows. Returns 2^k - 1.
*/
static uint64_t clear_index(const struct store *store, size_t rows) {
  size_t slots = 2;
  while (slots < rows + rows / 2) slots *= 2;
  memset(store->index, 0, sizeof *store->index * slots);
  return slots - 1;
}

/*
** Merges the rows of a bucket into one record for each pair. A slot of the index holds the number
** of a record plus 1, or 0 if the slot is empty.
*/
static void settle(struct partitioned_sums *records, struct store *store, struct bucket *bucket) {
  size_t rows = rows_of(store, bucket), known = bucket->settled, kept = 0;
  if (rows == known) return;
  uint64_t mask = clear_index(store, rows);
  uint32_t *index = store->index;
  for (size_t i = 0; i < rows; i++) {
    const record_word *row = row_at(store, bucket, i);
    uint64_t at = identity_mix(records->secret, record_unit(row), record_cell(records, row)) & mask;
    while (index[at] &&
           (i < known || !same_pair(records, row_at(store, bucket, index[at] - 1), row)))
      at = (at + 1) & mask;
    if (index[at]) {
      add_values(records, store, row_at(store, bucket, index[at] - 1), row);
    } else {
      if (kept < i) copy_row(store, row_at(store, bucket, kept), row);
      index[at] = (uint32_t)++kept;
    }
  }
  bucket->settled = kept;
  bucket->next = row_at(store, bucket, kept);
}

/* ---- room ------------------------------------------------------------------------------------ */

static int in_second_half(const struct partitioned_sums *records, const record_word *row,
                          int depth) {
  return (int)(place_of(records, row) >> (63 - depth) & 1);
}

/*
** Returns whether a split of this settled bucket would put at least a quarter of its records into
** each of the two new buckets.
*/
static int is_divisible(const struct partitioned_sums *records, const struct store *store,
                        const struct bucket *bucket) {
  size_t second = 0;
  if (bucket->depth == MOST_DEPTH) return 0;
  for (size_t i = 0; i < bucket->settled; i++)
    second += (size_t)in_second_half(records, row_at(store, bucket, i), bucket->depth);
  return second >= bucket->settled / 4 && second <= bucket->settled - bucket->settled / 4;
}

static int double_directory(struct store *store) {
  size_t size = (size_t)1 << store->depth;
  uint32_t *directory = realloc(store->directory, sizeof *directory * 2 * size);
  if (!directory) return 0;
  for (size_t i = 2 * size; i-- > 0;) directory[i] = directory[i / 2];
  store->directory = directory;
  store->depth++;
  return 1;
}

/*
** Moves records from a settled bucket into an empty bucket: all records whose place has a 1 as its
** next bit.
*/
static void move_half(const struct partitioned_sums *records, const struct store *store,
                      struct bucket *bucket, struct bucket *other) {
  const record_word *end = bucket->next;
  bucket->next = bucket->rows;
  for (const record_word *row = bucket->rows; row < end; row += store->words) {
    struct bucket *to = in_second_half(records, row, bucket->depth) ? other : bucket;
    if (to->next != row) copy_row(store, to->next, row);
    to->next += store->words;
  }
  bucket->settled = rows_of(store, bucket);
  other->settled = rows_of(store, other);
  other->depth = ++bucket->depth;
}

/* Splits the settled bucket that a place belongs to. */
static int split(const struct partitioned_sums *records, struct store *store, uint64_t place) {
  if (bucket_for(store, place)->depth == store->depth && !double_directory(store)) return 0;
  if (!open_bucket(store, room_of(store, bucket_for(store, place)))) return 0;
  uint32_t other = (uint32_t)store->count - 1;
  struct bucket *bucket = bucket_for(store, place);
  size_t width = (size_t)1 << (store->depth - bucket->depth);
  size_t first = (place >> 1 >> (63 - store->depth)) & ~(width - 1);
  move_half(records, store, bucket, &store->buckets[other]);
  for (size_t i = width / 2; i < width; i++) store->directory[first + i] = other;
  return 1;
}

/* Makes room in the full bucket that a place belongs to. */
static int make_room(struct partitioned_sums *records, struct store *store, uint64_t place) {
  struct bucket *bucket = bucket_for(store, place);
  size_t room = room_of(store, bucket);
  settle(records, store, bucket);
  if (bucket->settled <= room / 4 * 3) return 1;
  int is_large = room >= BUCKET_ROOM && room * store->words >= BUCKET_WORDS;
  return is_large && is_divisible(records, store, bucket) ? split(records, store, place)
                                                          : resize(store, bucket, 2 * room);
}

static void add_row(struct partitioned_sums *records, struct store *store, struct identity unit,
                    uint32_t cell, const int128 *values) {
  uint64_t place = identity_mix(records->secret, unit, 0);
  struct bucket *bucket = bucket_for(store, place);
  record_word *row = bucket->next;
  row[0] = unit.kind;
  row[1] = unit.low;
  if (records->with_cells) row[2] = cell;
  set_values(records, store, row, values);
  if (row > bucket->rows && same_pair(records, row - store->words, row)) {
    add_values(records, store, row - store->words, row);
    return;
  }
  bucket->next += store->words;
  /* Prefetches the memory of the next row. */
  for (size_t at = LINE; at < sizeof *row * store->words + LINE; at += LINE)
    memory_prefetch((const void *)((uintptr_t)bucket->next + at));
  if (bucket->next == bucket->end) records->failed |= !make_room(records, store, place);
}

int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values) {
  struct store *store = &records->narrow;
  int128 beyond = 0;
  for (int i = 0; i < records->components; i++) beyond |= values[i] > MOST || values[i] < -MOST;
  if (beyond) {
    store = &records->wide;
    if (!is_wide(records)) records->failed |= !store_open(records, store, 1);
  }
  if (!records->failed) add_row(records, store, unit, cell, values);
  return !records->failed;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void settle_all(struct partitioned_sums *records, struct store *store) {
  for (size_t i = 0; i < store->count && !records->failed; i++)
    settle(records, store, &store->buckets[i]);
}

/*
** Enters every unit with records in the wide store into the table `units`. Returns 1, or 0 if
** memory runs out.
*/
static int list_wide(const struct partitioned_sums *records, struct unit_table *units) {
  const struct store *store = &records->wide;
  for (size_t i = 0; i < store->count; i++) {
    const struct bucket *bucket = &store->buckets[i];
    for (const record_word *row = bucket->rows; row < bucket->next; row += store->words) {
      if (unit_table_add(units, record_unit(row), 0) && !unit_table_flush(units, 0, 0)) return 0;
    }
  }
  return unit_table_flush(units, 0, 0);
}

/* Moves all records of the units in the table `units` from the narrow store to the wide store. */
static void carry_units(struct partitioned_sums *records, const struct unit_table *units) {
  struct store *store = &records->narrow;
  for (size_t i = 0; i < store->count; i++) {
    struct bucket *bucket = &store->buckets[i];
    record_word *end = bucket->next;
    bucket->next = bucket->rows;
    for (record_word *row = bucket->rows; row < end && !records->failed; row += store->words) {
      int64_t unused;
      if (unit_table_get(units, record_unit(row), &unused)) {
        carry(records, row);
      } else {
        if (bucket->next != row) copy_row(store, bucket->next, row);
        bucket->next += store->words;
      }
    }
    bucket->settled = rows_of(store, bucket);
  }
}

/*
** Merges the rows of every pair into one record, and moves all records of each unit into one store.
** Returns 1, or 0 if memory ran out.
*/
static int gather(struct partitioned_sums *records) {
  settle_all(records, &records->narrow);
  if (is_wide(records) && !records->failed) {
    struct unit_table units;
    if (!unit_table_open(&units, records->secret, 0)) {
      records->failed = 1;
      return 0;
    }
    records->failed |= !list_wide(records, &units);
    if (!records->failed) carry_units(records, &units);
    settle_all(records, &records->wide);
    unit_table_close(&units);
  }
  return !records->failed;
}

static int each_of(struct partitioned_sums *records, const struct store *store, take_record *take,
                   void *context) {
  for (size_t i = 0; i < store->count; i++) {
    const struct bucket *bucket = &store->buckets[i];
    for (const record_word *row = bucket->rows; row < bucket->next; row += store->words) {
      get_values(records, store, row, records->values);
      if (!take(context, record_unit(row), record_cell(records, row), records->values)) return 0;
    }
  }
  return 1;
}

int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context) {
  return gather(records) && each_of(records, &records->narrow, take, context) &&
         each_of(records, &records->wide, take, context);
}

/*
** Calls `take` for each unit of a settled bucket, with all its records. The index leads to one
** record of each unit, and `links` leads from there to the unit's other records.
*/
static int take_units(const struct partitioned_sums *records, const struct bucket *bucket,
                      take_unit *take, void *context) {
  const struct store *store = records->taken;
  uint64_t mask = clear_index(store, bucket->settled);
  uint32_t *index = store->index, *links = store->links;
  for (size_t i = 0; i < bucket->settled; i++) {
    const record_word *row = row_at(store, bucket, i);
    uint64_t at = place_of(records, row) & mask;
    while (index[at] &&
           !identity_same(record_unit(row_at(store, bucket, index[at] - 1)), record_unit(row)))
      at = (at + 1) & mask;
    links[i] = index[at];
    index[at] = (uint32_t)i + 1;
  }
  for (uint64_t at = 0; at <= mask; at++) {
    size_t count = 0;
    for (uint32_t i = index[at]; i; i = links[i - 1])
      store->list[count++] = row_at(store, bucket, i - 1);
    if (count && !take(context, store->list, count)) return 0;
  }
  return 1;
}

int partitioned_sums_each_unit(struct partitioned_sums *records, take_unit *take, void *context) {
  if (!gather(records)) return 0;
  const struct store *stores[] = {&records->narrow, &records->wide};
  for (int i = 0; i < 2; i++) {
    records->taken = stores[i];
    for (size_t j = 0; j < stores[i]->count; j++) {
      if (!take_units(records, &stores[i]->buckets[j], take, context)) return 0;
    }
  }
  return 1;
}
