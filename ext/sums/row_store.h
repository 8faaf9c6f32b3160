/* row_store.h: rows of units in buckets, which partitioned_sums.h explains. The stores of
** partitioned_sums.c differ in the width of their rows.
**
** A row consists of its cell, its unit and its values. A narrow row has values of 64 bits, and a
** wide row has values of 128 bits. If the first value of every row is a count, a narrow row holds
** only the count, in 32 bits. The value is the count times `count_steps`.
**
** If a sum does not fit a narrow row, the store adds it to the wide store and sets the row to 0. */
#ifndef DIFFUSE_SUMS_ROW_STORE_H
#define DIFFUSE_SUMS_ROW_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/lattice.h"
#include "sums/identity.h"

/* ---- memory in chunks of one size ------------------------------------------------------------ */

/* A chunk that is freed is used again, and all are freed together at the end. Chunks are cut from
** slabs. The first slab has one chunk, and each other slab is twice as large as the slab before, up
** to a huge page. */
struct slab {
  char *bytes;
  size_t size;
};

struct chunks {
  size_t size; /* the number of bytes of a chunk */
  struct slab *slabs;
  size_t slab_count;
  char *fresh, *fresh_end; /* the part of the last slab that no chunk has used yet */
  void **spare;            /* chunks that are free again */
  size_t spare_count, spare_room;
};

/* Returns an array with room for one more element than `count`, or null if memory runs out. `room`
** is the number of elements that it has room for. */
void *chunks_grown(void *array, size_t size, size_t count, size_t *room);

/* ---- rows of units in buckets ---------------------------------------------------------------- */

typedef uint32_t record_word;

#define MOST_VALUE  ((int64_t)1 << 61) /* bound on a narrow value between two additions */
#define MOST_COUNT  ((int64_t)1 << 31) /* bound on a narrow count between two additions */
#define LEAST_WORDS 3                  /* least number of words of a row */

/* All chunks of a bucket are full, except the last. The next row goes to `next`. If next == end,
** the bucket needs another chunk, or has no chunk. */
struct bucket {
  record_word *next, *end;
  record_word **chunks;
  size_t count, room; /* used and allocated elements of `chunks` */
  /* The first `settled` rows are already merged into one record for each pair of unit and cell. */
  size_t settled;
  size_t limit; /* number of rows at which the bucket is settled again */
  int depth;    /* number of leading bits in which the places of its units agree */
};

struct row_store {
  const struct secret *secret;
  int components;
  int64_t count_steps;    /* the value of a count of 1; 0: the first value is no count */
  struct row_store *wide; /* null if this is the wide store */
  int *failed;            /* set to 1 if memory ran out and rows were lost; shared by all stores */
  size_t unit_words;      /* number of words of a unit: 1, 2 or 4 */
  size_t words;           /* number of words of a row */
  int chunk_shift;        /* a chunk has 2^chunk_shift rows */
  size_t full;            /* number of rows of a full bucket */
  int depth;              /* number of bits of a place that choose a bucket */
  /* 2^depth entries, indexes into `buckets`. Neighbouring entries may name the same bucket. */
  uint32_t *directory;
  uint32_t cells; /* all cells, joined by OR */
  struct bucket *buckets;
  size_t count, room;   /* used and allocated elements of `buckets` */
  struct chunks chunks; /* the memory of the rows */
  record_word *last;    /* the row that was added last, or null */
  uint32_t *index;      /* a hash table of one bucket's records, while the bucket is settled */
  size_t most;          /* number of rows for which the index has room */
  int128 *values;       /* the values of a row that moves to the wide store */
};

/* Opens an empty store, whose units have `unit_words` words. Returns 1, or 0 if memory runs out. A
** store whose bytes are all 0 may be closed, too. */
int row_store_open(struct row_store *store, const struct secret *secret, int components,
                   int64_t count_steps, size_t unit_words, struct row_store *wide, int *failed);
void row_store_close(struct row_store *store);

int row_store_is_empty(const struct row_store *store);

/* Returns the place of a unit, which decides about its bucket. */
static inline uint64_t row_store_place(const struct row_store *store, struct identity unit) {
  return identity_mix(store->secret, unit, 0);
}

/* Returns the bucket of the units with this place. */
static inline struct bucket *row_store_bucket(const struct row_store *store, uint64_t place) {
  return &store->buckets[store->directory[place >> 1 >> (63 - store->depth)]];
}

/* Prefetches the memory of the next row of a unit with this place. */
void row_store_expect(const struct row_store *store, uint64_t place);

/* Both functions add a row, unless *failed is set. If the store has counts, row_store_add() takes
** the count of the row as its first value. Its values are within +-MOST_VALUE, and its count is
** below MOST_COUNT. row_store_add_wide() adds a row to the wide store. */
void row_store_add(struct row_store *store, uint64_t place, struct identity unit, uint32_t cell,
                   const int64_t *values);
void row_store_add_wide(struct row_store *store, struct identity unit, uint32_t cell,
                        const int128 *values);

/* Merges the rows of a bucket into one record for each pair. Returns 0 if memory ran out so far. */
int row_store_settle(struct row_store *store, struct bucket *bucket);

/* Drops all rows of a bucket except the first `kept`. Returns 0 if memory runs out. */
int row_store_keep(struct row_store *store, struct bucket *bucket, size_t kept);

/* Adds the values of the row `from` to the values of the row `to`, and sets `from` to 0. */
void row_store_merge(struct row_store *store, record_word *to, record_word *from);

/* Moves the values of a narrow row to the wide store, and sets the row to 0. */
void row_store_carry(struct row_store *store, record_word *row);

/* Writes the values of `count` rows, one row after the other. */
void row_store_values(const struct row_store *store, const record_word *const *rows, size_t count,
                      int128 *values);

/* Makes the index large enough for 2^k slots, at least twice the number of rows. Returns 1, or 0 if
** memory runs out. */
int row_store_reserve(struct row_store *store, size_t rows);

/* ---- rows ------------------------------------------------------------------------------------ */

static inline uint64_t get_word(const record_word *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static inline void set_word(record_word *at, uint64_t word) {
  memcpy(at, &word, sizeof word);
}

static inline struct identity unit_of_row(const struct row_store *store, const record_word *row) {
  if (store->unit_words == 1) return (struct identity){IDENTITY_INTEGER, row[1]};
  return (struct identity){store->unit_words == 2 ? IDENTITY_INTEGER : get_word(row + 3),
                           get_word(row + 1)};
}

static inline void copy_row(const struct row_store *store, record_word *to,
                            const record_word *from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
  for (size_t i = LEAST_WORDS; i < store->words; i++) to[i] = from[i];
}

/* ---- buckets --------------------------------------------------------------------------------- */

static inline size_t chunk_rows(const struct row_store *store) {
  return (size_t)1 << store->chunk_shift;
}

static inline record_word *row_at(const struct row_store *store, const struct bucket *bucket,
                                  size_t i) {
  return bucket->chunks[i >> store->chunk_shift] + (i & (chunk_rows(store) - 1)) * store->words;
}

static inline size_t rows_of(const struct row_store *store, const struct bucket *bucket) {
  return bucket->count * chunk_rows(store) - (size_t)(bucket->end - bucket->next) / store->words;
}

/* Prefetches a chunk of short rows, or the first rows of another chunk. */
void row_store_prefetch(const struct bucket *bucket, size_t chunk);

#endif
