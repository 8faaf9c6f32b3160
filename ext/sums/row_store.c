/* row_store.c: see internal.h.
** Tests: tests/sums/test_vector_sum.c, tests/sums/test_unit_table.c */
#include "sums/internal.h"

#include <stdlib.h>

#include "os/os.h"

/* ---- memory in chunks of one size ------------------------------------------------------------ */

/* `size` is a multiple of the alignment that chunks need. */
static void chunks_open(struct chunks *chunks, size_t size) {
  *chunks = (struct chunks){.size = size};
}

static void chunks_close(struct chunks *chunks) {
  for (size_t i = 0; i < chunks->slab_count; i++)
    memory_table_free(chunks->slabs[i].bytes, chunks->slabs[i].size);
  free(chunks->slabs);
  free(chunks->spare);
}

void *chunks_grown(void *array, size_t size, size_t count, size_t *room) {
  if (count < *room) return array;
  size_t more = *room * 2 + 1;
  void *larger = realloc(array, size * more);
  if (larger) *room = more;
  return larger;
}

/* Allocates another slab. Returns 1, or 0 if memory runs out. */
static int open_slab(struct chunks *chunks) {
  size_t size = chunks->size;
  for (size_t i = 0; i < chunks->slab_count && size < MEMORY_HUGE_PAGE; i++) size *= 2;
  /* If chunks are short, little of a huge page is left over. */
  if (size > MEMORY_HUGE_PAGE && chunks->size <= MEMORY_HUGE_PAGE / 64) size = MEMORY_HUGE_PAGE;
  struct slab *slabs = realloc(chunks->slabs, sizeof *slabs * (chunks->slab_count + 1));
  if (!slabs) return 0;
  chunks->slabs = slabs;
  char *bytes = memory_table(size);
  if (!bytes) return 0;
  slabs[chunks->slab_count++] = (struct slab){bytes, size};
  chunks->fresh = bytes;
  chunks->fresh_end = bytes + size / chunks->size * chunks->size;
  return 1;
}

/* Returns a chunk, or null if memory runs out. The contents are unspecified. */
static void *chunks_take(struct chunks *chunks) {
  if (chunks->spare_count) return chunks->spare[--chunks->spare_count];
  if (chunks->fresh == chunks->fresh_end && !open_slab(chunks)) return 0;
  void *chunk = chunks->fresh;
  chunks->fresh += chunks->size;
  return chunk;
}

/* Makes a chunk free again. Returns 1, or 0 if memory runs out. */
static int chunks_free(struct chunks *chunks, void *chunk) {
  void **spare =
      chunks_grown(chunks->spare, sizeof *spare, chunks->spare_count, &chunks->spare_room);
  if (!spare) return 0;
  chunks->spare = spare;
  spare[chunks->spare_count++] = chunk;
  return 1;
}

#define CHUNK_BYTES 2048                /* least size of a chunk of short rows */
#define FULL_BYTES  ((size_t)320 << 10) /* size of a full bucket of short rows */
#define FULL_ROWS   ((size_t)128)       /* least number of rows of a full bucket */
#define SPLIT_BITS  3
#define PARTS       (1 << SPLIT_BITS) /* number of buckets that a bucket is split into */
#define LINE        64                /* bytes of a cache line */
#define MOST_DEPTH  30
#define MOST_ROWS   ((size_t)1 << 31)

#ifdef __GNUC__
#define NOT_INLINE __attribute__((noinline))
#else
#define NOT_INLINE
#endif

/* ---- rows ------------------------------------------------------------------------------------ */

static size_t first_value(const struct row_store *store) {
  return 1 + store->unit_words;
}

static void set_unit(const struct row_store *store, record_word *row, struct identity unit) {
  if (store->unit_words == 1) {
    row[1] = (record_word)unit.low;
  } else {
    set_word(row + 1, unit.low);
    if (store->unit_words == 4) set_word(row + 3, unit.kind);
  }
}

static int128 get_wide(const record_word *at) {
  return (int128)((uint128)get_word(at + 2) << 64 | get_word(at));
}

static void set_wide(record_word *at, int128 value) {
  set_word(at, (uint64_t)value);
  set_word(at + 2, (uint64_t)(value >> 64));
}

/* Writes the values of a row. Returns the address after the last value. */
static int128 *get_values(const struct row_store *store, const record_word *row, int128 *values) {
  const record_word *at = row + first_value(store), *end = row + store->words;
  if (!store->wide) {
    for (; at < end; at += 4) *values++ = get_wide(at);
    return values;
  }
  if (store->count_steps) *values++ = (int128)*at++ * store->count_steps;
  for (; at < end; at += 2) *values++ = (int64_t)get_word(at);
  return values;
}

void row_store_values(const struct row_store *store, const record_word *const *rows, size_t count,
                      int128 *values) {
  if (store->wide && store->components == 1 && !store->count_steps) { /* the same, but faster */
    size_t at = first_value(store);
    for (size_t i = 0; i < count; i++) values[i] = (int64_t)get_word(rows[i] + at);
    return;
  }
  for (size_t i = 0; i < count; i++) values = get_values(store, rows[i], values);
}

static void clear_values(const struct row_store *store, record_word *row) {
  memset(row + first_value(store), 0, sizeof *row * (store->words - first_value(store)));
}

static int same_pair(const struct row_store *store, const record_word *a, const record_word *b) {
  if (store->unit_words == 1) return get_word(a) == get_word(b);
  return a[0] == b[0] && get_word(a + 1) == get_word(b + 1) &&
         (store->unit_words == 2 || get_word(a + 3) == get_word(b + 3));
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static size_t chunk_words(const struct row_store *store) {
  return store->words << store->chunk_shift;
}

/* Adds an empty chunk to a bucket whose last chunk is full. Returns 0 if memory runs out. */
static int add_chunk(struct row_store *store, struct bucket *bucket) {
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

static size_t directory_entry(const struct row_store *store, uint64_t place) {
  return (size_t)(place >> 1 >> (63 - store->depth));
}

int row_store_keep(struct row_store *store, struct bucket *bucket, size_t kept) {
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

int row_store_reserve(struct row_store *store, size_t rows) {
  if (rows <= store->most) return 1;
  if (rows > MOST_ROWS) return 0;
  size_t room = rows + rows / 4;
  uint32_t *index = realloc(store->index, sizeof *index * 4 * room);
  if (!index) return 0;
  store->index = index;
  store->most = room;
  return 1;
}

static int open_bucket(struct row_store *store) {
  struct bucket *buckets =
      chunks_grown(store->buckets, sizeof *buckets, store->count, &store->room);
  if (!buckets) return 0;
  store->buckets = buckets;
  buckets[store->count++] = (struct bucket){.limit = store->full};
  return 1;
}

/* ---- stores ---------------------------------------------------------------------------------- */

int row_store_open(struct row_store *store, const struct secret *secret, int components,
                   int64_t count_steps, size_t unit_words, struct row_store *wide, int *failed) {
  *store = (struct row_store){.secret = secret,
                              .components = components,
                              .count_steps = wide ? count_steps : 0,
                              .unit_words = unit_words,
                              .wide = wide,
                              .failed = failed};
  store->words = first_value(store) + (size_t)components * (wide ? 2 : 4);
  store->words -= store->count_steps != 0;
  size_t bytes = store->words * sizeof(record_word);
  while (bytes << store->chunk_shift < CHUNK_BYTES) store->chunk_shift++;
  chunks_open(&store->chunks, bytes << store->chunk_shift);
  store->full = FULL_BYTES / bytes > FULL_ROWS ? FULL_BYTES / bytes : FULL_ROWS;
  store->directory = calloc(1, sizeof *store->directory);
  store->values = malloc(sizeof *store->values * (size_t)components);
  return store->directory && store->values && open_bucket(store);
}

void row_store_close(struct row_store *store) {
  for (size_t i = 0; i < store->count; i++) free(store->buckets[i].chunks);
  chunks_close(&store->chunks);
  void *arrays[] = {store->buckets, store->directory, store->index, store->values};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

int row_store_is_empty(const struct row_store *store) {
  return store->count == 1 && store->buckets->count == 0;
}

/* ---- settling -------------------------------------------------------------------------------- */

void row_store_carry(struct row_store *store, record_word *row) {
  get_values(store, row, store->values);
  clear_values(store, row);
  row_store_add_wide(store->wide, unit_of_row(store, row), row[0], store->values);
}

/* Adds the values of the row `from` to the values of the row `to`. */
NOT_INLINE static void add_values(struct row_store *store, record_word *to,
                                  const record_word *from) {
  size_t i = first_value(store);
  uint64_t beyond = 0;
  if (!store->wide) {
    for (; i < store->words; i += 4)
      set_wide(to + i, lattice_add(get_wide(to + i), get_wide(from + i)));
    return;
  }
  if (store->count_steps) {
    to[i] += from[i];
    beyond = to[i] >= MOST_COUNT;
    i++;
  }
  for (; i < store->words; i += 2) {
    uint64_t sum = get_word(to + i) + get_word(from + i);
    set_word(to + i, sum);
    beyond |= sum + (uint64_t)MOST_VALUE > 2 * (uint64_t)MOST_VALUE;
  }
  if (beyond) row_store_carry(store, to);
}

void row_store_merge(struct row_store *store, record_word *to, record_word *from) {
  add_values(store, to, from);
  clear_values(store, from);
}

/* Empties the index and gives it 2^k >= 1.5 `rows` slots. Returns 2^k - 1. */
static uint64_t clear_index(const struct row_store *store, size_t rows) {
  size_t slots = 2;
  while (slots < rows + rows / 2) slots *= 2;
  memset(store->index, 0, sizeof *store->index * slots);
  return slots - 1;
}

void row_store_prefetch(const struct bucket *bucket, size_t chunk) {
  if (chunk >= bucket->count) return;
  for (size_t at = 0; at < CHUNK_BYTES / sizeof(record_word); at += LINE / sizeof(record_word))
    memory_prefetch(bucket->chunks[chunk] + at);
}

/* A slot of the index holds the number of a record plus 1, or 0 if the slot is empty. */
int row_store_settle(struct row_store *store, struct bucket *bucket) {
  size_t rows = rows_of(store, bucket), known = bucket->settled, kept = 0;
  store->last = 0;
  if (rows == known) return 1;
  if (!row_store_reserve(store, rows)) return 0;
  uint64_t mask = clear_index(store, rows);
  uint32_t *index = store->index;
  for (size_t i = 0; i < rows; i++) {
    if (!(i & (chunk_rows(store) - 1))) row_store_prefetch(bucket, (i >> store->chunk_shift) + 1);
    const record_word *row = row_at(store, bucket, i);
    uint64_t at = identity_mix(store->secret, unit_of_row(store, row), row[0]) & mask;
    while (index[at] && (i < known || !same_pair(store, row_at(store, bucket, index[at] - 1), row)))
      at = (at + 1) & mask;
    if (index[at]) {
      add_values(store, row_at(store, bucket, index[at] - 1), row);
    } else {
      if (kept < i) copy_row(store, row_at(store, bucket, kept), row);
      index[at] = (uint32_t)++kept;
    }
  }
  return row_store_keep(store, bucket, kept) && !*store->failed;
}

/* ---- room ------------------------------------------------------------------------------------ */

static size_t part_of(const struct row_store *store, const record_word *row, int depth) {
  return row_store_place(store, unit_of_row(store, row)) >> (64 - SPLIT_BITS - depth) & (PARTS - 1);
}

/* Returns whether a split leaves at most 3/4 of the records of a settled bucket in each part. */
static int is_divisible(const struct row_store *store, const struct bucket *bucket) {
  size_t counts[PARTS] = {0};
  if (bucket->depth + SPLIT_BITS > MOST_DEPTH) return 0;
  for (size_t i = 0; i < bucket->settled; i++)
    counts[part_of(store, row_at(store, bucket, i), bucket->depth)]++;
  for (int i = 0; i < PARTS; i++) {
    if (counts[i] > bucket->settled / 4 * 3) return 0;
  }
  return 1;
}

static int grow_directory(struct row_store *store) {
  size_t size = (size_t)1 << store->depth;
  uint32_t *directory = realloc(store->directory, sizeof *directory * PARTS * size);
  if (!directory) return 0;
  for (size_t i = PARTS * size; i-- > 0;) directory[i] = directory[i / PARTS];
  store->directory = directory;
  store->depth += SPLIT_BITS;
  return 1;
}

/* Moves the records of a settled bucket into the buckets `parts`, the first of which is itself. */
static int move_rows(struct row_store *store, struct bucket *const *parts) {
  struct bucket from = *parts[0];
  *parts[0] = (struct bucket){0};
  size_t left = from.settled;
  int going = 1;
  for (size_t i = 0; i < from.count && going; i++) {
    const record_word *row = from.chunks[i];
    for (size_t j = 0; j < chunk_rows(store) && left && going; j++, left--, row += store->words) {
      struct bucket *to = parts[part_of(store, row, from.depth)];
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

static void set_limit(const struct row_store *store, struct bucket *bucket, int are_new) {
  bucket->limit = 2 * bucket->settled;
  if (bucket->limit < chunk_rows(store)) bucket->limit = chunk_rows(store);
  if (bucket->limit < store->full && are_new) bucket->limit = store->full;
}

static int split(struct row_store *store, uint64_t place, int are_new) {
  if (row_store_bucket(store, place)->depth == store->depth && !grow_directory(store)) return 0;
  size_t fresh = store->count;
  for (int i = 1; i < PARTS; i++) {
    if (!open_bucket(store)) return 0;
  }
  struct bucket *parts[PARTS] = {row_store_bucket(store, place)};
  size_t width = (size_t)1 << (store->depth - parts[0]->depth), part = width / PARTS;
  size_t first = directory_entry(store, place) & ~(width - 1);
  for (size_t i = 1; i < PARTS; i++) {
    parts[i] = &store->buckets[fresh + i - 1];
    for (size_t j = 0; j < part; j++)
      store->directory[first + i * part + j] = (uint32_t)(fresh + i - 1);
  }
  if (!move_rows(store, parts)) return 0;
  for (int i = 0; i < PARTS; i++) set_limit(store, parts[i], are_new);
  return 1;
}

/* Settles the bucket of a place, and splits it if it is still more than half full. The new limit is
** twice the number of records. If most of the new rows had new pairs, the next ones probably have,
** too, so the limit is then at least a full bucket. */
static int settle_full(struct row_store *store, uint64_t place) {
  struct bucket *bucket = row_store_bucket(store, place);
  size_t rows = rows_of(store, bucket), known = bucket->settled;
  if (!row_store_settle(store, bucket)) return 0;
  int are_new = bucket->settled - known >= (rows - known) / 4 * 3;
  if (bucket->settled > store->full / 2 && is_divisible(store, bucket))
    return split(store, place, are_new);
  set_limit(store, bucket, are_new);
  return 1;
}

/* Makes room for one more row in the bucket of a place. Returns the bucket, or null if memory runs
** out. It is not inlined, so that row_store_add() has few registers to save. */
NOT_INLINE static struct bucket *make_room(struct row_store *store, uint64_t place) {
  struct bucket *bucket = row_store_bucket(store, place);
  if (rows_of(store, bucket) >= bucket->limit) {
    if (!settle_full(store, place)) return 0;
    bucket = row_store_bucket(store, place);
  }
  return bucket->next < bucket->end || add_chunk(store, bucket) ? bucket : 0;
}

/* ---- adding ---------------------------------------------------------------------------------- */

void row_store_expect(const struct row_store *store, uint64_t place) {
  memory_prefetch(row_store_bucket(store, place)->next);
}

/* Returns the bucket to which the next row of a place is appended. Null: memory ran out. */
static inline struct bucket *open_row(struct row_store *store, uint64_t place) {
  struct bucket *bucket = row_store_bucket(store, place);
  if (bucket->next == bucket->end) bucket = make_room(store, place);
  *store->failed |= !bucket;
  return *store->failed ? 0 : bucket;
}

/* Adds the row bucket->next, whose values are set, or merges it into the row before of its pair. */
static inline void close_row(struct row_store *store, struct bucket *bucket, struct identity unit,
                             uint32_t cell) {
  record_word *row = bucket->next;
  row[0] = cell;
  set_unit(store, row, unit);
  store->cells |= cell;
  /* The comparison reads only the row added last, which is still in the cache. */
  if (store->last && store->last + store->words == row && same_pair(store, store->last, row)) {
    add_values(store, store->last, row);
    return;
  }
  store->last = row;
  bucket->next += store->words;
}

void row_store_add(struct row_store *store, uint64_t place, struct identity unit, uint32_t cell,
                   const int64_t *values) {
  struct bucket *bucket = open_row(store, place);
  if (!bucket) return;
  record_word *at = bucket->next + first_value(store), *end = bucket->next + store->words;
  if (store->count_steps) *at++ = (record_word)*values++;
  for (; at < end; at += 2) set_word(at, (uint64_t)*values++);
  close_row(store, bucket, unit, cell);
}

void row_store_add_wide(struct row_store *store, struct identity unit, uint32_t cell,
                        const int128 *values) {
  struct bucket *bucket = open_row(store, row_store_place(store, unit));
  if (!bucket) return;
  record_word *at = bucket->next + first_value(store), *end = bucket->next + store->words;
  for (; at < end; at += 4) set_wide(at, *values++);
  close_row(store, bucket, unit, cell);
}
