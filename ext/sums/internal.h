/* internal.h: what the files of this room offer to each other. */
#ifndef DIFFUSE_SUMS_INTERNAL_H
#define DIFFUSE_SUMS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/noise.h"
#include "sums/layout.h"
#include "sums/sums.h"

/* ---- sums by unit and cell (partitioned_sums.c) ---------------------------------------------- */

/* Exact sums for each pair of unit and cell, for millions of pairs.
**
** The code appends each row to a bucket. Each unit has a place, the result of identity_mix(). The
** upper bits of the place choose the bucket. A bucket is a list of chunks of a few kilobytes. When
** a bucket has reached its limit, its rows are merged into one record for each pair of unit and
** cell. If the bucket is still more than half full, the next three bits of the places split the
** bucket in eight. If most of its records belong to a few units, its limit is doubled instead. As a
** result
**   - memory is read and written in order, except inside one bucket, which fits a cache;
**   - the memory is proportional to the number of pairs, not of rows, and grows chunk by chunk;
**   - all records of a unit are in one bucket.
** A hash table of millions of pairs would read and write memory in random order, and would need
** room for its largest possible size.
**
** A row consists of its cell, its unit and its values of 64 bits. There is a store of buckets for
** units that are integers in [0, 2^32), another one for all other integers, and a third one for all
** other units. Their rows are
**
**     | cell: 32 bits | low: 32 bits | value | value | ...
**     | cell: 32 bits | low: 64 bits | value | value | ...
**     | cell: 32 bits | low: 64 bits | kind: 64 bits | value | value | ...
**
** If the first value of a row is a count, it is the same number of steps for most rows. Then the
** first value takes only 32 bits: the count without the steps.
**
** A sum beyond +-2^61, and a count that is negative, beyond 2^31 or no multiple of the steps, goes
** to a fourth store, whose rows are those of the third with values of 128 bits. (Such counts can
** come from the state of a shard.) In the end all records of such a unit are there. Sums are exact
** and saturate at +-2^125 (lattice_add). Sums of rows do not reach this limit, because a value of a
** row is at most 2^LATTICE_ROW_BITS. */

struct partitioned_sums;

/* Makes an empty set of sums, whose records have `components` values, or returns null if memory
** runs out. If `count_steps` is above 0, the first value is a count, and this is the value of a
** count of 1. */
struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components,
                                               int64_t count_steps);
void partitioned_sums_close(struct partitioned_sums *records);

/* Adds a row. A caller without cells passes cell 0. Returns 0 if memory has run out. */
int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values);
/* The same for values within +-2^61. If the first value is a count, values[0] is the count without
** the steps, in [0, 2^31). */
int partitioned_sums_add_narrow(struct partitioned_sums *records, struct identity unit,
                                uint32_t cell, const int64_t *values);

/* A record is an array of words. record_unit() and record_values() may only be called inside the
** function that partitioned_sums_each_unit() calls, for records that it receives. record_values()
** writes the values of `count` records one after the other. */
typedef uint32_t record_word;
static inline uint32_t record_cell(const record_word *record) {
  return record[0];
}
struct identity record_unit(const struct partitioned_sums *records, const record_word *record);
void record_values(const struct partitioned_sums *records, const record_word *const *list,
                   size_t count, int128 *values);

/* Call `take` for every record, or for every unit with its `count` records, in any order, and stop
** when `take` returns 0. Both return 1, or 0 if `take` returned 0 or memory has run out. */
typedef int take_unit(void *context, const record_word *const *list, size_t count);
int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context);
int partitioned_sums_each_unit(struct partitioned_sums *records, take_unit *take, void *context);

/* Lets partitioned_sums_each_unit() and partitioned_sums_take_part() call `expect` with each unit
** some units before they take it, so that its function can prefetch memory. */
void partitioned_sums_expect(struct partitioned_sums *records, expect_unit *expect,
                             const void *context);

/* Several sums of one release, whose secrets are equal, can be read on several threads. A part of
** them is all units of a store whose places begin with the first `depth` bits of `place`. Every
** unit is in one part. The threads read different parts, and between these calls nobody adds a row.
**
** partitioned_sums_end() must be called first, for each of the sums, on any thread. If the cells of
** some sums have other numbers than those of the first ones, partitioned_sums_translate() then
** gives them these numbers: a slot has a cell and one of `bins` numbers, cell * bins + number, and
** cells[i] is the new number of cell i.
**
** partitioned_sums_parts() lists the parts. The list stays empty if some unit has sums of 128 bits,
** and the caller then reads the sums on one thread. `parts` is all 0 before the call, and the
** caller calls free() for parts->list. Returns 1, or 0 if memory runs out.
**
** partitioned_sums_take_part() calls `take` for each unit of a part. `records` are the sums of this
** list that belong to the thread, for record_unit() and record_values(). It may return SUMS_WIDE: a
** sum of this part needs 128 bits, and the caller must read all sums on one thread after all. They
** are complete, whatever parts have been read. */
struct record_part {
  int store, depth;
  uint64_t place;
};
struct record_parts {
  struct record_part *list;
  size_t count, room;
};
enum sums_added { SUMS_FAILED, SUMS_ADDED, SUMS_WIDE };
int partitioned_sums_end(struct partitioned_sums *records);
void partitioned_sums_translate(struct partitioned_sums *records, const int *cells, uint32_t bins);
int partitioned_sums_parts(struct partitioned_sums *const *list, int count,
                           struct record_parts *parts);
enum sums_added partitioned_sums_take_part(struct partitioned_sums *records,
                                           struct partitioned_sums *const *list, int count,
                                           const struct record_part *part, take_unit *take,
                                           void *context);

/* ---- rows in buckets (row_store.c) ----------------------------------------------------------- */

/* Rows of units in buckets, which partitioned sums explain. The stores of
** partitioned_sums.c differ in the width of their rows.
**
** A row consists of its cell, its unit and its values. A narrow row has values of 64 bits, and a
** wide row has values of 128 bits. If the first value of every row is a count, a narrow row holds
** only the count, in 32 bits. The value is the count times `count_steps`.
**
** If a sum does not fit a narrow row, the store adds it to the wide store and sets the row to 0. */

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

/* ---- cross tables (cross_sums.c) ------------------------------------------------------------- */

/* The sums of cross tables (layout.h): clips one unit's rows, adds up the measured
** tables, and numbers the cells of the full table that rows lie in. All arithmetic that matters for
** privacy is exact.
**
** The unit's rows are sums for each cell of the full table in which it has rows. If the vector v of
** all measured tables that follows from these sums is longer than the layout allows, all sums are
** scaled by one factor and truncated towards zero, and the norm of the new v is checked exactly. So
** the clipped unit is again a set of rows whose tables have their margins, and the clipped units
** can be added up in the full table before the measured tables are computed from it. The result
** depends on the sums of this unit only, not on their order. */

struct cross_sums;

/* Returns null if memory runs out. */
struct cross_sums *cross_sums_open(const struct layout *shape);
void cross_sums_close(struct cross_sums *tables);

/* Clips a unit with `count` >= 1 different cells of the full table. `values` holds the layout's
** components of each cell. Their absolute values are at most 2^125. Sets *clipped if the sums were
** scaled, otherwise leaves it. Returns 1, or 0 if memory runs out. */
int cross_sums_clip(struct cross_sums *tables, const int64_t *cells, int128 *values, size_t count,
                    int *clipped);

/* Bounds what the units of a household count together (sums.h). `values` holds the sums of
** the household in `count` >= 1 different cells of the full table. If the measured tables of these
** sums are at most `reach` < 2^54 long, sets *is_short to 1. Otherwise sets it to 0, scales these
** tables down, and adds them to `coordinates`. Returns 1, or 0 if memory runs out. */
int cross_sums_project(struct cross_sums *tables, const int64_t *cells, int128 *values,
                       size_t count, int64_t reach, int128 *coordinates, int *is_short);

/* Add up the coordinates of all measured tables. cross_sums_add() takes the values, within +-2^110,
** of the cell with these keys. Cells whose keys follow each other are fastest, because tables
** without the last attributes wait for the sum of many cells. cross_sums_end() completes the
** coordinates. The sums saturate at +-2^125. */
void cross_sums_add(struct cross_sums *tables, const int *keys, const int128 *values,
                    int128 *coordinates);
void cross_sums_end(struct cross_sums *tables, int128 *coordinates);

/* ---- the inside of vector_sum.c and vector_totals.c ------------------------------------------ */

/* The inside of sums.h. vector_sum.c adds rows to the records of the units,
** or to the totals; vector_totals.c adds the units to the totals. A record is
** the sum of a unit's rows in one cell. All functions return 0 when out of memory. */

#define ONES 64 /* number of stored results of clip_counts() */

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
  struct group_keys *cells;  /* null without keys */
  struct full_cells *full;   /* cross tables: the cells of the full table; otherwise null */
  struct cross_sums *tables; /* cross tables */
  int128 *joined;            /* cross tables: coordinates that other vectors have added */
  struct late *late;  /* cross tables: values whose totals the processor fetches into its cache */
  int late_count;     /* the number of these values */
  int64_t *full_list; /* cross tables: the cells of the unit that is being added */
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
  const struct households *households; /* the wider units; null: none */
  int64_t household;                   /* of the unit that is being added, or HOUSEHOLD_NONE */
  struct partitioned_sums *shared;     /* the sums of the households; their cells are coordinates */
  struct partitioned_sums
      *tallies;             /* what the units of a household tell (layout.h), with diagnose */
  int128 *cut;              /* cross tables: coordinates of the households that were scaled down */
  int is_added;             /* the totals have all units already (sums.h) */
  struct vector_sum *first; /* the vector whose cells this one uses (sums.h), or null */
  int outside;              /* the row that is being added is outside the range of x */
  struct unit_table outsides; /* the units with such rows; open if diagnose and by_unit */
};

/* Makes room for the matrix of a unit with this number of records. */
int vector_scratch_reserve(struct vector_sum *vectors, size_t records);

/* Makes room for more coordinates. With private keys, new cells appear while rows are read. */
int vector_totals_grow(struct vector_sum *vectors, size_t coordinates);

static inline int vector_totals_reserve(struct vector_sum *vectors, size_t coordinates) {
  return coordinates <= vectors->totals_room || vector_totals_grow(vectors, coordinates);
}

/* Sets the totals and the tally to 0, before the units are added. */
int vector_totals_begin(struct vector_sum *vectors);

/* Clips the matrix of `count` slots in the scratch and adds it to the totals (V1). The unit counts
** as clipped if `clipped` is true or if clipping changes its matrix. */
int vector_totals_add(struct vector_sum *vectors, size_t count, int clipped);

/* Adds the records of a unit to the totals. There may be nothing to choose among them. */
take_unit vector_totals_unit;

/* Adds the households of `others` to those of `vectors`. */
int vector_households_join(struct vector_sum *vectors, struct vector_sum *others);

/* Bounds the sums of all households and adds them to the totals. */
int vector_households_add(struct vector_sum *vectors);

/* Adds the waiting values of cross tables to the totals. */
void vector_late_add(struct vector_sum *vectors);

#endif
