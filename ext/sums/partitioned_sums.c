/*
** partitioned_sums.c: see partitioned_sums.h.
**
** There are four stores of buckets: for units that are integers of 32 bits, for other integers, for
** other units, and for units with a value beyond +-2^61. In the end all records of a unit are in
** one store.
*/
#include "sums/partitioned_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sums/chunks.h"
#include "sums/unit_table.h"

#define MOST        ((int64_t)1 << 61)  /* bound on a narrow value between two additions */
#define LEAST_WORDS 4                   /* least number of words of a row */
#define CHUNK_BYTES 2048                /* least size of a chunk of short rows */
#define FULL_BYTES  ((size_t)320 << 10) /* size of a full bucket of short rows */
#define FULL_ROWS   ((size_t)128)       /* least number of rows of a full bucket */
#define SPLIT_BITS  3
#define PARTS       (1 << SPLIT_BITS) /* number of buckets that a bucket is split into */
#define LINE        64                /* bytes of a cache line */
#define MOST_DEPTH  30
#define MOST_ROWS   ((size_t)1 << 31)

/*
** All chunks of a bucket are full, except the last. The next row goes to `next`. If next == end,
** the bucket needs another chunk, or has no chunk.
*/
struct bucket {
  record_word *next, *end;
  record_word **chunks;
  size_t count, room; /* used and allocated elements of `chunks` */
  /* The first `settled` rows are already merged into one record for each pair of unit and cell. */
  size_t settled;
  size_t limit; /* number of rows at which the bucket is settled again */
  int depth;    /* number of leading bits in which the places of its units agree */
};

struct store {
  int is_wide;
  size_t unit_words; /* number of words of a unit: 1, 2 or 4 */
  size_t words;      /* number of words of a row */
  int chunk_shift;   /* a chunk has 2^chunk_shift rows */
  size_t full;       /* number of rows of a full bucket */
  int depth;         /* number of bits of a place that choose a bucket */
  /*
  ** 2^depth entries, each of which is an index into `buckets`. Several neighbouring entries may
  ** name the same bucket.
  */
  uint32_t *directory;
  uint32_t cells; /* all cells, joined by OR */
  struct bucket *buckets;
  size_t count, room;       /* used and allocated elements of `buckets` */
  struct chunks chunks;     /* the memory of the rows */
  record_word *last;        /* the row that was added last, or null */
  uint32_t *index;          /* a hash table of one bucket's records, while the bucket is read */
  uint32_t *links;          /* for each record, the next record of the same unit */
  const record_word **list; /* the records of one unit */
  size_t most;              /* number of rows for which the three arrays above have room */
};

enum { SMALL, INTEGERS, OTHERS, WIDE, STORES };

struct partitioned_sums {
  const struct secret *secret;
  int components;
  int failed; /* memory ran out and rows were lost; stays set */
  struct store stores[STORES];
  const struct store *taken; /* the store whose records are passed to the caller's function */
  int128 *values;            /* the values of one record */
};

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t get_word(const record_word *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static void set_word(record_word *at, uint64_t word) {
  memcpy(at, &word, sizeof word);
}

static size_t first_value(const struct store *store) {
  return 1 + store->unit_words;
}

/* Returns the narrow store for a unit. */
static int store_for(struct identity unit) {
  if (unit.kind != IDENTITY_INTEGER) return OTHERS;
  return unit.low >> 32 ? INTEGERS : SMALL;
}

static struct identity unit_of_row(const struct store *store, const record_word *row) {
  if (store->unit_words == 1) return (struct identity){IDENTITY_INTEGER, row[1]};
  return (struct identity){store->unit_words == 2 ? IDENTITY_INTEGER : get_word(row + 3),
                           get_word(row + 1)};
}

static void set_unit(const struct store *store, record_word *row, struct identity unit) {
  if (store->unit_words == 1) {
    row[1] = (record_word)unit.low;
  } else {
    set_word(row + 1, unit.low);
    if (store->unit_words == 4) set_word(row + 3, unit.kind);
  }
}

struct identity record_unit(const struct partitioned_sums *records, const record_word *record) {
  return unit_of_row(records->taken, record);
}

static void get_values(const struct partitioned_sums *records, const struct store *store,
                       const record_word *row, int128 *values) {
  row += first_value(store);
  for (size_t i = 0; i < (size_t)records->components; i++)
    values[i] = store->is_wide
                    ? (int128)((uint128)get_word(row + 4 * i + 2) << 64 | get_word(row + 4 * i))
                    : (int128)(int64_t)get_word(row + 2 * i);
}

static void set_values(const struct partitioned_sums *records, const struct store *store,
                       record_word *row, const int128 *values) {
  row += first_value(store);
  for (size_t i = 0; i < (size_t)records->components; i++) {
    if (store->is_wide) {
      set_word(row + 4 * i, (uint64_t)values[i]);
      set_word(row + 4 * i + 2, (uint64_t)(values[i] >> 64));
    } else {
      set_word(row + 2 * i, (uint64_t)values[i]);
    }
  }
}

void record_values(const struct partitioned_sums *records, const record_word *const *list,
                   size_t count, int128 *values) {
  for (size_t i = 0; i < count; i++, values += records->components)
    get_values(records, records->taken, list[i], values);
}

static int same_pair(const struct store *store, const record_word *a, const record_word *b) {
  if (store->unit_words == 1) return get_word(a) == get_word(b);
  return a[0] == b[0] && get_word(a + 1) == get_word(b + 1) &&
         (store->unit_words == 2 || get_word(a + 3) == get_word(b + 3));
}

static uint64_t place_of(const struct partitioned_sums *records, const struct store *store,
                         const record_word *row) {
  return identity_mix(records->secret, unit_of_row(store, row), 0);
}

/* Copies a row. */
static void copy_row(const struct store *store, record_word *to, const record_word *from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
  to[3] = from[3];
  for (size_t i = LEAST_WORDS; i < store->words; i++) to[i] = from[i];
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static size_t chunk_rows(const struct store *store) {
  return (size_t)1 << store->chunk_shift;
}

static size_t chunk_words(const struct store *store) {
  return store->words << store->chunk_shift;
}

/* Adds an empty chunk to a bucket whose last chunk is full. Returns 1, or 0 if memory runs out. */
static int add_chunk(struct store *store, struct bucket *bucket) {
  record_word **chunks = chunks_grown(bucket->chunks, sizeof *chunks, bucket->count, &bucket->room);
  if (!chunks) return 0;
  bucket->chunks = chunks;
  record_word *chunk = chunks_take(&store->chunks);
  if (!chunk) return 0;
  chunks[bucket->count++] = bucket->next = chunk;
  bucket->end = chunk + chunk_words(store);
  return 1;
}

/* ---- buckets --------------------------------------------------------------------------------- */

static size_t directory_entry(const struct store *store, uint64_t place) {
  return (size_t)(place >> 1 >> (63 - store->depth));
}

static struct bucket *bucket_for(const struct store *store, uint64_t place) {
  return &store->buckets[store->directory[directory_entry(store, place)]];
}

static record_word *row_at(const struct store *store, const struct bucket *bucket, size_t i) {
  return bucket->chunks[i >> store->chunk_shift] + (i & (chunk_rows(store) - 1)) * store->words;
}

static size_t rows_of(const struct store *store, const struct bucket *bucket) {
  return bucket->count * chunk_rows(store) - (size_t)(bucket->end - bucket->next) / store->words;
}

/* Drops all rows of a bucket except the first `kept`. Returns 1, or 0 if memory runs out. */
static int keep_rows(struct store *store, struct bucket *bucket, size_t kept) {
  size_t chunks = (kept + chunk_rows(store) - 1) >> store->chunk_shift;
  while (bucket->count > chunks) {
    if (!chunks_free(&store->chunks, bucket->chunks[--bucket->count])) return 0;
  }
  bucket->next = bucket->end = 0;
  if (chunks) {
    bucket->next = row_at(store, bucket, kept - 1) + store->words;
    bucket->end = bucket->chunks[chunks - 1] + chunk_words(store);
  }
  bucket->settled = kept;
  return 1;
}

/*
** Makes `index`, `links` and `list` large enough for a bucket of `rows` rows. Returns 1, or 0 if
** memory runs out.
*/
static int reserve(struct store *store, size_t rows) {
  if (rows <= store->most) return 1;
  if (rows > MOST_ROWS) return 0;
  size_t room = rows + rows / 4;
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

/* Makes another bucket. Returns 0 when out of memory. */
static int open_bucket(struct store *store) {
  struct bucket *buckets =
      chunks_grown(store->buckets, sizeof *buckets, store->count, &store->room);
  if (!buckets) return 0;
  store->buckets = buckets;
  buckets[store->count++] = (struct bucket){.limit = store->full};
  return 1;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store_close(struct store *store) {
  for (size_t i = 0; i < store->count; i++) free(store->buckets[i].chunks);
  chunks_close(&store->chunks);
  void *arrays[] = {store->buckets, store->directory, store->index, store->links, store->list};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static int store_open(struct store *store, int components, size_t unit_words, int is_wide) {
  *store = (struct store){.unit_words = unit_words, .is_wide = is_wide};
  store->words = first_value(store) + (size_t)components * (is_wide ? 4 : 2);
  size_t bytes = store->words * sizeof(record_word);
  while (bytes << store->chunk_shift < CHUNK_BYTES) store->chunk_shift++;
  chunks_open(&store->chunks, bytes << store->chunk_shift);
  store->full = FULL_BYTES / bytes > FULL_ROWS ? FULL_BYTES / bytes : FULL_ROWS;
  store->directory = calloc(1, sizeof *store->directory);
  return store->directory && open_bucket(store);
}

struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components) {
  struct partitioned_sums *records = calloc(1, sizeof *records);
  if (!records) return 0;
  *records = (struct partitioned_sums){.secret = secret, .components = components};
  records->values = calloc((size_t)components, sizeof *records->values);
  static const size_t unit_words[STORES] = {1, 2, 4, 4};
  int is_open = records->values != 0;
  for (int i = 0; i < STORES && is_open; i++)
    is_open = store_open(&records->stores[i], components, unit_words[i], i == WIDE);
  if (is_open) return records;
  partitioned_sums_close(records);
  return 0;
}

void partitioned_sums_close(struct partitioned_sums *records) {
  if (!records) return;
  for (int i = 0; i < STORES; i++) store_close(&records->stores[i]);
  free(records->values);
  free(records);
}

static int is_empty(const struct store *store) {
  return store->count == 1 && store->buckets->count == 0;
}

int partitioned_sums_are_none(const struct partitioned_sums *records) {
  for (int i = 0; i < STORES; i++) {
    if (!is_empty(&records->stores[i])) return 0;
  }
  return 1;
}

/* ---- settling -------------------------------------------------------------------------------- */

static void add_row(struct partitioned_sums *records, struct store *store, struct identity unit,
                    uint32_t cell, const int128 *values);

/* Moves a narrow row to the wide store, and resets its values to 0. */
static void carry(struct partitioned_sums *records, const struct store *store, record_word *row) {
  get_values(records, store, row, records->values);
  memset(row + first_value(store), 0, sizeof(uint64_t) * (size_t)records->components);
  add_row(records, &records->stores[WIDE], unit_of_row(store, row), record_cell(row),
          records->values);
}

/* Adds the values of the row `from` to the values of the row `to`. */
static void add_values(struct partitioned_sums *records, const struct store *store, record_word *to,
                       const record_word *from) {
  size_t first = first_value(store);
  if (store->is_wide) {
    for (size_t i = first; i < store->words; i += 4) {
      int128 a = (int128)((uint128)get_word(to + i + 2) << 64 | get_word(to + i));
      int128 b = (int128)((uint128)get_word(from + i + 2) << 64 | get_word(from + i));
      int128 sum = lattice_add(a, b);
      set_word(to + i, (uint64_t)sum);
      set_word(to + i + 2, (uint64_t)(sum >> 64));
    }
    return;
  }
  uint64_t beyond = 0;
  for (size_t i = first; i < store->words; i += 2) {
    uint64_t sum = get_word(to + i) + get_word(from + i);
    set_word(to + i, sum);
    beyond |= sum + (uint64_t)MOST > 2 * (uint64_t)MOST;
  }
  if (beyond) carry(records, store, to);
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

/* Prefetches the first rows of a chunk, if the bucket has this chunk. */
static void prefetch_chunk(const struct bucket *bucket, size_t chunk) {
  if (chunk >= bucket->count) return;
  for (size_t at = 0; at < CHUNK_BYTES / sizeof(record_word); at += LINE / sizeof(record_word))
    memory_prefetch(bucket->chunks[chunk] + at);
}

/*
** Merges the rows of a bucket into one record for each pair. A slot of the index holds the number
** of a record plus 1, or 0 if the slot is empty. Returns 1, or 0 if memory runs out.
*/
static int settle(struct partitioned_sums *records, struct store *store, struct bucket *bucket) {
  size_t rows = rows_of(store, bucket), known = bucket->settled, kept = 0;
  store->last = 0;
  if (rows == known) return 1;
  if (!reserve(store, rows)) return 0;
  uint64_t mask = clear_index(store, rows);
  uint32_t *index = store->index;
  for (size_t i = 0; i < rows; i++) {
    if (!(i & (chunk_rows(store) - 1))) prefetch_chunk(bucket, (i >> store->chunk_shift) + 1);
    const record_word *row = row_at(store, bucket, i);
    uint64_t at = identity_mix(records->secret, unit_of_row(store, row), record_cell(row)) & mask;
    while (index[at] && (i < known || !same_pair(store, row_at(store, bucket, index[at] - 1), row)))
      at = (at + 1) & mask;
    if (index[at]) {
      add_values(records, store, row_at(store, bucket, index[at] - 1), row);
    } else {
      if (kept < i) copy_row(store, row_at(store, bucket, kept), row);
      index[at] = (uint32_t)++kept;
    }
  }
  return keep_rows(store, bucket, kept);
}

/* ---- room ------------------------------------------------------------------------------------ */

static size_t part_of(const struct partitioned_sums *records, const struct store *store,
                      const record_word *row, int depth) {
  return place_of(records, store, row) >> (64 - SPLIT_BITS - depth) & (PARTS - 1);
}

/*
** Returns whether a split of this settled bucket would leave at most three quarters of its records
** in each new bucket.
*/
static int is_divisible(const struct partitioned_sums *records, const struct store *store,
                        const struct bucket *bucket) {
  size_t counts[PARTS] = {0};
  if (bucket->depth + SPLIT_BITS > MOST_DEPTH) return 0;
  for (size_t i = 0; i < bucket->settled; i++)
    counts[part_of(records, store, row_at(store, bucket, i), bucket->depth)]++;
  for (int i = 0; i < PARTS; i++) {
    if (counts[i] > bucket->settled / 4 * 3) return 0;
  }
  return 1;
}

static int grow_directory(struct store *store) {
  size_t size = (size_t)1 << store->depth;
  uint32_t *directory = realloc(store->directory, sizeof *directory * PARTS * size);
  if (!directory) return 0;
  for (size_t i = PARTS * size; i-- > 0;) directory[i] = directory[i / PARTS];
  store->directory = directory;
  store->depth += SPLIT_BITS;
  return 1;
}

/*
** Moves the records of a settled bucket into the buckets `parts`. The first of these is the bucket
** itself. Returns 1, or 0 if memory runs out.
*/
static int move_rows(const struct partitioned_sums *records, struct store *store,
                     struct bucket *const *parts) {
  struct bucket from = *parts[0];
  *parts[0] = (struct bucket){0};
  size_t left = from.settled;
  int going = 1;
  for (size_t i = 0; i < from.count && going; i++) {
    const record_word *row = from.chunks[i];
    for (size_t j = 0; j < chunk_rows(store) && left && going; j++, left--, row += store->words) {
      struct bucket *to = parts[part_of(records, store, row, from.depth)];
      going = to->next < to->end || add_chunk(store, to);
      if (!going) break;
      copy_row(store, to->next, row);
      to->next += store->words;
    }
    going = going && chunks_free(&store->chunks, from.chunks[i]);
  }
  free(from.chunks);
  for (int i = 0; i < PARTS; i++) {
    parts[i]->settled = rows_of(store, parts[i]);
    parts[i]->depth = from.depth + SPLIT_BITS;
  }
  return going;
}

/* Sets the number of rows at which a settled bucket is settled again. */
static void set_limit(const struct store *store, struct bucket *bucket, int are_new) {
  bucket->limit = 2 * bucket->settled;
  if (bucket->limit < chunk_rows(store)) bucket->limit = chunk_rows(store);
  if (bucket->limit < store->full && are_new) bucket->limit = store->full;
}

/* Splits the settled bucket that a place belongs to. Returns 1, or 0 if memory runs out. */
static int split(const struct partitioned_sums *records, struct store *store, uint64_t place,
                 int are_new) {
  if (bucket_for(store, place)->depth == store->depth && !grow_directory(store)) return 0;
  size_t fresh = store->count;
  for (int i = 1; i < PARTS; i++) {
    if (!open_bucket(store)) return 0;
  }
  struct bucket *parts[PARTS] = {bucket_for(store, place)};
  size_t width = (size_t)1 << (store->depth - parts[0]->depth), part = width / PARTS;
  size_t first = directory_entry(store, place) & ~(width - 1);
  for (size_t i = 1; i < PARTS; i++) {
    parts[i] = &store->buckets[fresh + i - 1];
    for (size_t j = 0; j < part; j++)
      store->directory[first + i * part + j] = (uint32_t)(fresh + i - 1);
  }
  if (!move_rows(records, store, parts)) return 0;
  for (int i = 0; i < PARTS; i++) set_limit(store, parts[i], are_new);
  return 1;
}

/*
** Settles the bucket that a place belongs to, and splits the bucket if it is still more than half
** full. The new limit is twice the number of records. If most of the new rows had new pairs, the
** next rows probably have new pairs too, so the limit is then at least a full bucket. Returns 1, or
** 0 if memory runs out.
*/
static int settle_full(struct partitioned_sums *records, struct store *store, uint64_t place) {
  struct bucket *bucket = bucket_for(store, place);
  size_t rows = rows_of(store, bucket), known = bucket->settled;
  if (!settle(records, store, bucket)) return 0;
  int are_new = bucket->settled - known >= (rows - known) / 4 * 3;
  if (bucket->settled > store->full / 2 && is_divisible(records, store, bucket))
    return split(records, store, place, are_new);
  set_limit(store, bucket, are_new);
  return 1;
}

/*
** Makes room for one more row in the bucket that a place belongs to. Returns the bucket, or null if
** memory runs out.
*/
static struct bucket *make_room(struct partitioned_sums *records, struct store *store,
                                uint64_t place) {
  struct bucket *bucket = bucket_for(store, place);
  if (rows_of(store, bucket) >= bucket->limit) {
    if (!settle_full(records, store, place)) return 0;
    bucket = bucket_for(store, place);
  }
  return bucket->next < bucket->end || add_chunk(store, bucket) ? bucket : 0;
}

/* Adds a row. Its values are `narrow` or, if `narrow` is null, `values`. */
static inline void add_row_of(struct partitioned_sums *records, struct store *store,
                              struct identity unit, uint32_t cell, const int128 *values,
                              const int64_t *narrow) {
  uint64_t place = identity_mix(records->secret, unit, 0);
  struct bucket *bucket = bucket_for(store, place);
  if (records->failed) return;
  if (bucket->next == bucket->end && !(bucket = make_room(records, store, place))) {
    records->failed = 1;
    return;
  }
  record_word *row = bucket->next;
  row[0] = cell;
  store->cells |= cell;
  set_unit(store, row, unit);
  if (narrow) {
    memcpy(row + first_value(store), narrow, sizeof *narrow * (size_t)records->components);
  } else {
    set_values(records, store, row, values);
  }
  /* The comparison reads only the row added last, which is still in the cache. */
  if (store->last && store->last + store->words == row && same_pair(store, store->last, row)) {
    add_values(records, store, store->last, row);
    return;
  }
  store->last = row;
  bucket->next += store->words;
  /* Prefetches the memory of the next row. */
  for (size_t at = LINE; at < sizeof *row * store->words + LINE; at += LINE)
    memory_prefetch((const void *)((uintptr_t)bucket->next + at));
}

static void add_row(struct partitioned_sums *records, struct store *store, struct identity unit,
                    uint32_t cell, const int128 *values) {
  add_row_of(records, store, unit, cell, values, 0);
}

int partitioned_sums_add_narrow(struct partitioned_sums *records, struct identity unit,
                                uint32_t cell, const int64_t *values) {
  add_row_of(records, &records->stores[store_for(unit)], unit, cell, 0, values);
  return !records->failed;
}

int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values) {
  int128 beyond = 0;
  for (int i = 0; i < records->components; i++) beyond |= values[i] > MOST || values[i] < -MOST;
  add_row(records, &records->stores[beyond ? WIDE : store_for(unit)], unit, cell, values);
  return !records->failed;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void settle_all(struct partitioned_sums *records, struct store *store) {
  for (size_t i = 0; i < store->count && !records->failed; i++)
    records->failed |= !settle(records, store, &store->buckets[i]);
}

/*
** Enters every unit with records in the wide store into the table `units`. Returns 1, or 0 if
** memory runs out.
*/
static int list_wide(const struct partitioned_sums *records, struct unit_table *units) {
  const struct store *store = &records->stores[WIDE];
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
static void carry_units(struct partitioned_sums *records, struct store *store,
                        const struct unit_table *units) {
  for (size_t i = 0; i < store->count; i++) {
    struct bucket *bucket = &store->buckets[i];
    size_t kept = 0;
    for (size_t j = 0; j < bucket->settled && !records->failed; j++) {
      record_word *row = row_at(store, bucket, j);
      int64_t unused;
      if (unit_table_get(units, unit_of_row(store, row), &unused)) {
        carry(records, store, row);
      } else {
        if (kept < j) copy_row(store, row_at(store, bucket, kept), row);
        kept++;
      }
    }
    if (records->failed) return;
    records->failed |= !keep_rows(store, bucket, kept);
  }
}

/*
** Merges the rows of every pair into one record, and moves all records of each unit into one store.
** Returns 1, or 0 if memory ran out.
*/
static int gather(struct partitioned_sums *records) {
  struct store *stores = records->stores;
  for (int i = 0; i < WIDE; i++) settle_all(records, &stores[i]);
  if (!is_empty(&stores[WIDE]) && !records->failed) {
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

/*
** Prepares a bucket whose records are read next, while they are in the cache: merges the rows of
** every pair into one record. Calls gather() as soon as the wide store has a row, unless
** *is_gathered is set. The units of the buckets before have no wide rows, because all records of a
** unit are in one bucket. Returns 1, or 0 if memory ran out.
*/
static int prepare(struct partitioned_sums *records, struct store *store, struct bucket *bucket,
                   int *is_gathered) {
  records->failed = records->failed || !settle(records, store, bucket);
  if (*is_gathered || is_empty(&records->stores[WIDE])) return !records->failed;
  *is_gathered = 1;
  return gather(records);
}

int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context) {
  int is_gathered = 0;
  for (int i = 0; i < STORES; i++) {
    struct store *store = &records->stores[i];
    for (size_t j = 0; j < store->count; j++) {
      struct bucket *bucket = &store->buckets[j];
      if (!prepare(records, store, bucket, &is_gathered)) return 0;
      for (size_t k = 0; k < bucket->settled; k++) {
        const record_word *row = row_at(store, bucket, k);
        get_values(records, store, row, records->values);
        if (!take(context, unit_of_row(store, row), record_cell(row), records->values)) return 0;
      }
    }
  }
  return 1;
}

/*
** Calls `take` for each unit of a settled bucket, with all its records. The index leads to one
** record of each unit, and `links` leads from there to the unit's other records. If there is only
** one cell, each record is a unit of its own.
*/
static int take_units(struct partitioned_sums *records, struct store *store,
                      const struct bucket *bucket, take_unit *take, void *context) {
  if (!reserve(store, bucket->settled)) {
    records->failed = 1;
    return 0;
  }
  for (size_t i = 0; i < bucket->settled && !store->cells; i++) {
    store->list[0] = row_at(store, bucket, i);
    if (!take(context, store->list, 1)) return 0;
  }
  if (!store->cells) return 1;
  uint64_t mask = clear_index(store, bucket->settled);
  uint32_t *index = store->index, *links = store->links;
  for (size_t i = 0; i < bucket->settled; i++) {
    const record_word *row = row_at(store, bucket, i);
    struct identity unit = unit_of_row(store, row);
    uint64_t at = identity_mix(records->secret, unit, 0) & mask;
    while (index[at] &&
           !identity_same(unit_of_row(store, row_at(store, bucket, index[at] - 1)), unit))
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
  int is_gathered = 0;
  for (int i = 0; i < STORES; i++) {
    struct store *store = &records->stores[i];
    records->taken = store;
    for (size_t j = 0; j < store->count; j++) {
      struct bucket *bucket = &store->buckets[j];
      if (!prepare(records, store, bucket, &is_gathered)) return 0;
      if (bucket->settled && !take_units(records, store, bucket, take, context)) return 0;
    }
  }
  return 1;
}
