/*
** test_table.c: table.h against plain arrays: keys whose numbers are known beforehand, from the first chunk
** through its growth to several splits.
*/
#include "check.h"
#include "random.h"

#include <stdlib.h>

#include "release/table.h"

enum { MANY = 500000 }; /* 16 chunks */

static struct hash_table fresh(const struct secret *secret, int of_pairs) {
  struct hash_table table;
  CHECK(table_open(&table, secret, of_pairs) == 0, "no memory");
  return table;
}

/* Enters a key that is not there. */
static void enter(struct hash_table *table, struct identity key, uint32_t cell, int128 total) {
  uint64_t place = table_place(table, key, cell);
  CHECK(table_reserve(table) == 0, "no memory");
  struct slot *slot = table->of_pairs ? table_find_pair(table, key, cell, place)
                                      : table_find(table, key, place);
  CHECK(slot->key.kind == IDENTITY_NOBODY, "found before it was entered");
  table_enter(table, slot, key, place);
  if (table->of_pairs) {
    slot->cell = cell;
    slot->number = (uint32_t)total;
  } else {
    slot->total = total;
  }
}

/* Keys of all kinds; low words that differ in few bits, or in the high ones only. */
static struct identity key_of(uint32_t i) {
  switch (i % 3) {
  case 0: return identity_integer(i);
  case 1: return identity_integer((int64_t)((uint64_t)i << 40));
  default: return (struct identity){(uint64_t)1 << 63 | i, 7};
  }
}

static void every_key_is_found(void) {
  struct secret secret;
  CHECK(secret_draw(&secret) == 0, "no random bytes");
  struct hash_table table = fresh(&secret, 0);
  for (uint32_t i = 0; i < MANY; i++) enter(&table, key_of(i), 0, (int128)i << 70);
  CHECK(table.depth >= 3, "only 2^%d chunks", table.depth);
  for (uint32_t i = 0; i < MANY; i++) {
    struct identity key = key_of(i);
    const struct slot *slot = table_find(&table, key, table_place(&table, key, 0));
    CHECK(slot->total == (int128)i << 70 && identity_same(slot->key, key), "key %u is lost", i);
  }
  struct identity stranger = identity_real(0.5);
  CHECK(table_find(&table, stranger, table_place(&table, stranger, 0))->key.kind == IDENTITY_NOBODY,
        "a stranger is found");
  table_close(&table);
}

/* One unit in many cells, many units in one, and all between. */
static void pairs_differ_in_unit_or_cell(void) {
  struct secret secret;
  CHECK(secret_draw(&secret) == 0, "no random bytes");
  struct hash_table table = fresh(&secret, 1);
  for (uint32_t i = 0; i < MANY; i++) enter(&table, key_of(i / 700), i % 700, i);
  for (uint32_t i = 0; i < MANY; i++) {
    struct identity key = key_of(i / 700);
    uint64_t place = table_place(&table, key, i % 700);
    const struct slot *slot = table_find_pair(&table, key, i % 700, place);
    CHECK(slot->number == i && slot->cell == i % 700, "pair %u is lost", i);
  }
  table_close(&table);
}

static void all_are_listed_once(void) {
  struct secret secret;
  CHECK(secret_draw(&secret) == 0, "no random bytes");
  for (uint32_t count = 0; count <= MANY; count = count * 9 + 1) {
    struct hash_table table = fresh(&secret, 0);
    unsigned char *seen = calloc(count + 1, 1);
    for (uint32_t i = 0; i < count; i++) enter(&table, key_of(i), 0, i);
    uint64_t at = 0;
    uint32_t listed = 0, twice = 0;
    for (const struct slot *slot; (slot = table_next(&table, &at)) != 0; listed++)
      twice += seen[(uint32_t)slot->total]++;
    CHECK(listed == count && twice == 0, "%u of %u listed, %u twice", listed, count, twice);
    free(seen);
    table_close(&table);
  }
}

/* Twice the slots of three quarters, and no more: what the figures for memory rest on. */
static void memory_is_bounded(void) {
  struct secret secret;
  CHECK(secret_draw(&secret) == 0, "no random bytes");
  struct hash_table table = fresh(&secret, 0);
  for (uint32_t i = 1; i <= MANY; i++) {
    enter(&table, key_of(i), 0, 0);
    double slots = (double)((table.mask + 1) << table.depth);
    CHECK(slots <= 512 || slots <= i / 0.37, "%g slots for %u keys", slots, i);
    CHECK(slots >= i / 0.76, "%g slots for %u keys", slots, i);
  }
  table_close(&table);
}

int main(void) {
  RUN(every_key_is_found);
  RUN(pairs_differ_in_unit_or_cell);
  RUN(all_are_listed_once);
  RUN(memory_is_bounded);
  FINISH();
}
