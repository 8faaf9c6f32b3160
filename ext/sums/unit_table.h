/*
** unit_table.h: a hash table from identities to 64-bit numbers, which rows are added to: for
** millions of them.
**
** A line is a cache line, of 8 words, and has four slots where all keys are integers, else two:
**
**     | low | mark |        | low | mark | kind | - |        mark: the number + 2^63; 0: the slot
**     is empty
**
** Lines are in chunks of 2 MiB, a huge page each: the upper bits of a key's place (its mix with the
** secret) choose the chunk, the lower ones the line; a key whose line is full goes into the next of
** its chunk. When a chunk is three quarters full, every chunk is split in two and leaves its memory
** to the next, so that a table never needs more than what it grows to.
**
** A large table does not fit a cache: rows wait in a batch while their lines are prefetched, and a
** row that finds its line full waits once more, for the next.
*/
#ifndef DIFFUSE_SUMS_UNIT_TABLE_H
#define DIFFUSE_SUMS_UNIT_TABLE_H

#include <stdint.h>
#include <stdlib.h>

#include "sums/identity.h"
#include "base/memory.h"

#define TABLE_BATCH 64
#define TABLE_WORDS 8                  /* of a line */
#define TABLE_MOST  ((int64_t)1 << 61) /* what is added, at most; and what a number is, at rest */

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
  int of_integers; /* all keys are */
  int full;        /* a chunk has to be split before the next batch */
  int failed;      /* rows were lost: sticks */
  int waiting;
  struct addend batch[TABLE_BATCH];
};

/* Starts an empty table. Returns 1, or 0 when memory ran out; then there is nothing to close. */
int unit_table_open(struct unit_table *table, const struct secret *secret, int of_integers);
void unit_table_close(struct unit_table *table);

/* Starts again without keys, in the memory that there is. The batch must be empty. */
void unit_table_clear(struct unit_table *table);

/* Takes a number; returns 1, or 0 where it cannot. */
typedef int take_number(void *context, struct identity key, int64_t number);

/*
** Empties the batch. A number that has left +-TABLE_MOST is handed over, and starts again at 0; it
** fails where `take` is null. Returns 1, or 0 when memory ran out or `take` said so, now or
** before.
*/
int unit_table_flush(struct unit_table *table, take_number *take, void *context);

/*
** Of what has been flushed: sets *number to that of a key, and returns whether there is one; or
** hands over every number, and returns 1, or 0 when `take` said so.
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

/* Adds an amount, within +-TABLE_MOST. Returns whether the batch is full and has to be flushed. */
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
