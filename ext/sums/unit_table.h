/*
** unit_table.h: a hash table from identities to 64-bit totals of rows, for millions of identities.
**
** A line is a cache line of 8 words. It has four slots if all keys are integers, otherwise two:
**
**     | low | mark |        | low | mark | kind | - |
**
** mark is the number + 2^63; 0 marks an empty slot.
**
** Lines are in chunks of 2 MiB, one huge page each. The upper bits of a key's place (its mix with
** the secret) choose the chunk, the lower bits the line. If the line is full, the key goes to the
** next line of the chunk. When a chunk is three quarters full, every chunk is split in two. The
** memory of a split chunk is used for the next, so a table never needs more than its final size.
**
** A large table does not fit into a cache. Rows therefore wait in a batch while their lines are
** prefetched. A row that finds its line full waits again, for the next line.
*/
#ifndef DIFFUSE_SUMS_UNIT_TABLE_H
#define DIFFUSE_SUMS_UNIT_TABLE_H

#include <stdint.h>
#include <stdlib.h>

#include "sums/identity.h"
#include "base/memory.h"

#define TABLE_BATCH 64
#define TABLE_WORDS 8                  /* of a line */
#define TABLE_MOST  ((int64_t)1 << 61) /* limit of a term, and of a total between calls */

/* A row, or neighbouring rows of one key, on the way to the table. */
struct addend {
  struct identity key;
  int64_t amount;
  uint64_t *line; /* where the key is looked for */
};

struct unit_table {
  const struct secret *secret;
  uint64_t **chunks; /* 2^depth */
  uint32_t *used;    /* slots of each */
  uint64_t mask;     /* lines of a chunk - 1 */
  int depth;
  int of_integers; /* whether all keys are integers */
  int full;        /* a chunk has to be split before the next batch */
  int failed;      /* rows were lost; stays set */
  int waiting;
  struct addend batch[TABLE_BATCH];
};

/*
** Starts an empty table. Returns 1, or 0 when out of memory; in that case there is nothing to
** close.
*/
int unit_table_open(struct unit_table *table, const struct secret *secret, int of_integers);
void unit_table_close(struct unit_table *table);

/* Removes all keys and keeps the memory. The batch must be empty. */
void unit_table_clear(struct unit_table *table);

/* Takes a number. Returns 1, or 0 if it cannot. */
typedef int take_number(void *context, struct identity key, int64_t number);

/*
** Empties the batch. A number that leaves +-TABLE_MOST is handed over and starts again at 0. If
** `take` is null, this is a failure. Returns 1, or 0 if memory ran out or `take` returned 0, in
** this or an earlier call.
*/
int unit_table_flush(struct unit_table *table, take_number *take, void *context);

/*
** Read the numbers that have been flushed. unit_table_get() sets *number to the number of a key and
** returns whether the key exists. unit_table_each() hands over every number; it returns 1, or 0 if
** `take` returned 0.
*/
int unit_table_get(const struct unit_table *table, struct identity key, int64_t *number);
int unit_table_each(const struct unit_table *table, take_number *take, void *context);

static inline uint64_t unit_table_place(const struct unit_table *table, struct identity key) {
  return identity_mix(table->secret, key, 0);
}

static inline uint64_t unit_table_chunk(const struct unit_table *table, uint64_t place) {
  return place >> 32 >> (32 - table->depth);
}

/* The first line for a key. */
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
