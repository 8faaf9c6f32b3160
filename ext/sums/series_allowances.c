/* series_allowances.c: see sums.h. The entries are one array, in the order in which the units came
** first, and a table has the number of each name. A name is a hash already, so the table needs no
** secret.
** Tests: tests/release/test_series_neighbours.py, tests/sums/test_identity.c */
#include "sums/sums.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "noise/noise.h"
#include "sums/internal.h"
#include "sums/layout.h"

#define NAME  16 /* bytes of the name of a unit */
#define FLAGS 62 /* the bit of the first flag */
/* What a unit has spent is rounded up in each of at most 4096 periods. A vector that does not fit
** for this alone is not cut down. */
#define ROUNDINGS 4096
#define SPENT     (((uint64_t)1 << FLAGS) - 1)

struct entry {
  unsigned char name[NAME];
  unsigned char spent[8]; /* little-endian, with the flags */
};
_Static_assert(sizeof(struct entry) == ALLOWANCE_BYTES, "an entry has no gaps");

struct allowances {
  unsigned char secret[ALLOWANCE_SECRET];
  int64_t reach;
  struct entry *entries;
  size_t count, room;
  struct numbering numbers; /* the number of the entry of each name */
};

struct allowances *allowances_open(const unsigned char secret[ALLOWANCE_SECRET], int64_t reach) {
  static const struct secret none;
  struct allowances *book = calloc(1, sizeof *book);
  if (!book || !numbering_open(&book->numbers, &none)) {
    free(book);
    return 0;
  }
  memcpy(book->secret, secret, ALLOWANCE_SECRET);
  book->reach = reach;
  return book;
}

void allowances_close(struct allowances *book) {
  if (!book) return;
  entropy_wipe(book->secret, sizeof book->secret);
  free(book->entries);
  numbering_close(&book->numbers);
  free(book);
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint64_t read_number(const unsigned char bytes[8]) {
  uint64_t number = 0;
  for (int i = 7; i >= 0; i--) number = number << 8 | bytes[i];
  return number;
}

static void write_number(unsigned char bytes[8], uint64_t number) {
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> 8 * i);
}

/* Returns the entry of a name. A new entry has spent nothing. Null: out of memory. */
static struct entry *entry_of(struct allowances *book, const unsigned char *name) {
  struct identity key = {read_number(name), read_number(name + 8)};
  int64_t number = numbering_get(&book->numbers, key);
  if (number >= 0) return &book->entries[number];
  struct entry *entries = chunks_grown(book->entries, sizeof *entries, book->count, &book->room);
  if (!entries) return 0;
  book->entries = entries;
  if (numbering_put(&book->numbers, key, (int64_t)book->count) < 0) return 0;
  struct entry *entry = &entries[book->count++];
  *entry = (struct entry){{0}, {0}};
  memcpy(entry->name, name, NAME);
  return entry;
}

static void name_of(const struct allowances *book, struct identity unit, unsigned char name[NAME]) {
  unsigned char bytes[ALLOWANCE_SECRET + 16], digest[crypto_hash_sha256_BYTES];
  memcpy(bytes, book->secret, ALLOWANCE_SECRET);
  write_number(bytes + ALLOWANCE_SECRET, unit.kind);
  write_number(bytes + ALLOWANCE_SECRET + 8, unit.low);
  crypto_hash_sha256(digest, bytes, sizeof bytes);
  memcpy(name, digest, NAME);
}

int allowances_load(struct allowances *book, const unsigned char *bytes, size_t size) {
  if (size % ALLOWANCE_BYTES) return 0;
  for (; size; bytes += ALLOWANCE_BYTES, size -= ALLOWANCE_BYTES) {
    size_t before = book->count;
    struct entry *entry = entry_of(book, bytes);
    if (!entry) return -1;
    memcpy(entry->spent, bytes + NAME, sizeof entry->spent);
    if (book->count == before || (read_number(entry->spent) & SPENT) > (uint64_t)book->reach)
      return 0;
  }
  return 1;
}

size_t allowances_count(const struct allowances *book) {
  return book->count;
}

const unsigned char *allowances_bytes(const struct allowances *book, size_t first) {
  return (const unsigned char *)&book->entries[first];
}

/* ---- spending -------------------------------------------------------------------------------- */

/* Returns the norm of the first `end` components of each cell, rounded up, if it is at most `most`,
** which is below 2^62. Otherwise returns -1. The comparison is exact. */
static int64_t norm_up_to(const int128 *values, size_t cells, const struct layout *shape, int end,
                          int64_t most) {
  uint128 sum = 0, limit = shape->is_l1 ? (uint128)most : (uint128)most * (uint128)most;
  for (size_t cell = 0; cell < cells; cell++) {
    for (int j = 0; j < end; j++) {
      uint128 size = lattice_magnitude(values[cell * (size_t)shape->components + (size_t)j]);
      if (size > (uint128)most) return -1;
      sum += shape->is_l1 ? size : size * size;
      if (sum > limit) return -1;
    }
  }
  if (shape->is_l1) return (int64_t)sum;
  return layout_root_up(sum);
}

/* Returns what a vector takes of the allowance, or -1 if this is more than is left: the larger of
** its norm and of its rows, as a share of the rows that a release may have. Otherwise rows in the
** middle of the range of an average, whose vectors are short, would count more often than
** others. */
static int64_t price(const int128 *values, size_t cells, const struct layout *shape,
                     const struct block *block) {
  int64_t norm = norm_up_to(values, cells, shape, block->end, block->reach);
  int64_t rows = norm_up_to(values, cells, shape, block->lead_end, block->lead_reach);
  if (norm < 0 || rows < 0) return -1;
  const struct block *all = &shape->blocks[shape->block_count - 1];
  int64_t share = (int64_t)((uint128)rows * (uint128)all->reach / (uint128)all->lead_reach);
  return share > norm ? share : norm;
}

int allowances_spend(struct allowances *book, const struct layout *shape, struct identity unit,
                     int128 *values, size_t cells, int *first) {
  unsigned char name[NAME];
  name_of(book, unit, name);
  struct entry *entry = entry_of(book, name);
  if (!entry) return 0;
  uint64_t number = read_number(entry->spent), flags = number >> FLAGS;
  int64_t left = book->reach - (int64_t)(number & SPENT);
  struct block block = shape->blocks[shape->block_count - 1];
  block.lead_reach = (int64_t)((uint128)left * (uint128)block.lead_reach / (uint128)block.reach);
  block.reach = left;
  int64_t spent = price(values, cells, shape, &block);
  if (spent < 0) {
    struct block more = block;
    more.lead_reach += ROUNDINGS;
    more.reach += ROUNDINGS;
    if (price(values, cells, shape, &more) < 0) flags |= ALLOWANCE_CLIPPED;
    clip_block(shape, &block, values, cells, shape->components);
    spent = left;
  }
  flags |= ALLOWANCE_COUNTED;
  *first = (int)(flags & ~(number >> FLAGS));
  write_number(entry->spent, (uint64_t)(book->reach - left + spent) | flags << FLAGS);
  return 1;
}
