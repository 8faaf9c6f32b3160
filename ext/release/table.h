/*
** table.h: a hash table from identities, or from pairs of identities and cells, for millions of them.
**
** Open addressing with linear probing over slots of 32 bytes, two to a cache line,
**
**     | identity 16 | total 16 |            or            | identity 16 | cell 4 | number 4 | - 8 |
**
** in chunks of 2 MiB, a huge page each: the upper bits of an identity's place (its mix with the secret) choose
** the chunk, the lower ones the line where probing starts. A table that grows splits every chunk in two and
** uses the memory of the last one again, so that it never needs more than what it grows to. No chunk
** is more than three quarters full before a batch of new identities.
**
** A large table does not fit a cache. Who has rows to spare prefetches their homes, then finds them near.
*/
#ifndef DIFFUSE_RELEASE_TABLE_H
#define DIFFUSE_RELEASE_TABLE_H

#include "noise/lattice.h"
#include "release/identity.h"
#include "release/memory.h"

struct slot {
  struct identity key; /* nobody: the slot is empty */
  union {
    int128 total;
    struct {
      uint32_t cell; /* part of the key of a table of pairs */
      uint32_t number;
    };
  };
};

struct hash_table {
  const struct secret *secret;
  struct slot **chunks; /* 2^depth */
  uint32_t *used;       /* slots of each */
  uint64_t mask;        /* slots of a chunk - 1 */
  int depth;
  int of_pairs;
  int full; /* a chunk has to be split before the next batch */
};

#define TABLE_BATCH 64 /* identities that may be entered after table_reserve() */

/* Starts an empty table. Returns 0, or -1 when memory ran out; then there is nothing to close. */
int table_open(struct hash_table *table, const struct secret *secret, int of_pairs);
void table_close(struct hash_table *table);

/* Makes room for a batch. Returns 0, or -1 when memory ran out; then the table is as before. */
int table_reserve(struct hash_table *table);

/* Where a key belongs; cell 0 but for pairs. */
static inline uint64_t table_place(const struct hash_table *table, struct identity key,
                                   uint32_t cell) {
  return identity_mix(table->secret, key, cell);
}

static inline uint64_t table_chunk(const struct hash_table *table, uint64_t place) {
  return place >> 32 >> (32 - table->depth);
}

/* Where probing starts: the first slot of a line. */
static inline uint64_t table_home(const struct hash_table *table, uint64_t place) {
  return place << 1 & table->mask;
}

static inline void table_prefetch(const struct hash_table *table, uint64_t place) {
  memory_prefetch(&table->chunks[table_chunk(table, place)][table_home(table, place)]);
}

/* The slot of a key at its place, or the empty one where it belongs. */
static inline struct slot *table_find(const struct hash_table *table, struct identity key,
                                      uint64_t place) {
  struct slot *chunk = table->chunks[table_chunk(table, place)];
  uint64_t at = table_home(table, place);
  while (chunk[at].key.kind != IDENTITY_NOBODY && !identity_same(chunk[at].key, key))
    at = (at + 1) & table->mask;
  return &chunk[at];
}

/* The same in a table of pairs. */
static inline struct slot *table_find_pair(const struct hash_table *table, struct identity key,
                                           uint32_t cell, uint64_t place) {
  struct slot *chunk = table->chunks[table_chunk(table, place)];
  uint64_t at = table_home(table, place);
  while (chunk[at].key.kind != IDENTITY_NOBODY &&
         (chunk[at].cell != cell || !identity_same(chunk[at].key, key)))
    at = (at + 1) & table->mask;
  return &chunk[at];
}

/* Takes an empty slot that was found for a key; its cell is the caller's to set. */
static inline void table_enter(struct hash_table *table, struct slot *slot, struct identity key,
                               uint64_t place) {
  slot->key = key;
  table->full |= ++table->used[table_chunk(table, place)] > (table->mask + 1) / 4 * 3;
}

/* The slots that are not empty, one after the other: from *at = 0 until null. */
const struct slot *table_next(const struct hash_table *table, uint64_t *at);

#endif
