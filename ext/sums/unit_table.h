/* unit_table.h: a hash table from identities to 64-bit totals of rows, for millions of identities.
**
** A line is a cache line of 8 words. A line has four slots (left) if all keys are integers,
** otherwise two slots (right):
**
**     | low | mark |        | low | mark | kind | - |
**
** The number of a key is its total. The mark of a used slot is the number of its key + 2^63. The
** mark of an empty slot is 0.
**
** Lines are stored in chunks of 2 MiB, and each chunk is one huge page. The upper bits of a key's
** place, unit_table_place(), choose the chunk, and the lower bits choose the line. If the line is
** full, the key goes to the next line of the chunk. When a chunk is more than three quarters full,
** every chunk is split in two. The memory of a split chunk is used again for the next split, so a
** table never needs more than its final size and one chunk.
**
** A large table does not fit into a cache. Rows therefore wait in a batch while the processor
** prefetches their lines. If a row finds its line full, the row waits again while the next line is
** prefetched. */
#ifndef DIFFUSE_SUMS_UNIT_TABLE_H
#define DIFFUSE_SUMS_UNIT_TABLE_H

#include <stdint.h>
#include <stdlib.h>

#include "os/process.h"
#include "sums/identity.h"

#define TABLE_BATCH 64
#define TABLE_WORDS 8                  /* words of a line */
#define TABLE_MOST  ((int64_t)1 << 61) /* limit of an amount, and of a stored number */

/* A row, or the sum of consecutive rows of one key, that waits in the batch. */
struct addend {
  struct identity key;
  int64_t amount;
  uint64_t *line; /* the next line in which the key is looked up */
};

struct unit_table {
  const struct secret *secret;
  uint64_t **chunks; /* 2^depth pointers */
  uint32_t *used;    /* number of used slots of each chunk */
  uint64_t mask;     /* number of lines of a chunk, minus 1 */
  int depth;
  int of_integers; /* 1 if all keys are integers */
  int full;        /* a chunk has to be split before the next batch */
  int failed;      /* 1 if rows were lost; stays set */
  int waiting;
  struct addend batch[TABLE_BATCH];
};

/* Opens an empty table. Returns 1, or 0 if memory runs out; it need not be closed then. */
int unit_table_open(struct unit_table *table, const struct secret *secret, int of_integers);
void unit_table_close(struct unit_table *table);

/* Removes all keys and keeps the memory. The batch must be empty. */
void unit_table_clear(struct unit_table *table);

/* A caller's function that receives the number of a key. Returns 1, or 0 after a failure. */
typedef int take_number(void *context, struct identity key, int64_t number);

/* Adds all rows of the batch to the table. A number that leaves the range +-TABLE_MOST is passed to
** `take`, and the stored number is set to 0; without `take` this is a failure. Returns 1, or 0 if
** memory ran out or `take` failed in this or an earlier call. */
int unit_table_flush(struct unit_table *table, take_number *take, void *context);

/* These functions read the stored numbers, without the rows that still wait in the batch.
** unit_table_get() sets *number to the number of a key and returns whether the key exists.
** unit_table_each() calls `take` for every key, and returns 0 as soon as `take` does. */
int unit_table_get(const struct unit_table *table, struct identity key, int64_t *number);
int unit_table_each(const struct unit_table *table, take_number *take, void *context);

static inline uint64_t unit_table_place(const struct unit_table *table, struct identity key) {
  return identity_mix(table->secret, key, 0);
}

static inline uint64_t unit_table_chunk(const struct unit_table *table, uint64_t place) {
  return place >> 32 >> (32 - table->depth);
}

/* Returns the first line in which a key may be. */
static inline uint64_t *unit_table_line(const struct unit_table *table, struct identity key) {
  uint64_t place = unit_table_place(table, key);
  return &table->chunks[unit_table_chunk(table, place)][(place & table->mask) * TABLE_WORDS];
}

/* Adds an amount within +-TABLE_MOST. Returns whether the batch is full and must be flushed. */
static inline int unit_table_add(struct unit_table *table, struct identity key, int64_t amount) {
  struct addend *row = &table->batch[table->waiting];
  if (table->waiting && identity_same(row[-1].key, key) && llabs(row[-1].amount) < TABLE_MOST / 2) {
    row[-1].amount += amount;
    return 0;
  }
  row->key = key;
  row->amount = amount;
  row->line = unit_table_line(table, key);
  memory_prefetch(row->line);
  return ++table->waiting == TABLE_BATCH;
}

#endif
