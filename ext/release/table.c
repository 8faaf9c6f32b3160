/* table.c: see table.h. */
#include "release/table.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS ((uint64_t)1 << 9)
#define CHUNK_SLOTS (MEMORY_HUGE_PAGE / sizeof(struct slot))
#define MOST_DEPTH  31

int table_open(struct hash_table *table, const struct secret *secret, int of_pairs) {
  *table = (struct hash_table){.secret = secret,
                               .chunks = malloc(sizeof *table->chunks),
                               .used = calloc(1, sizeof *table->used),
                               .mask = FIRST_SLOTS - 1,
                               .of_pairs = of_pairs};
  struct slot *chunk = memory_table(FIRST_SLOTS * sizeof *chunk);
  if (table->chunks) table->chunks[0] = chunk;
  if (table->chunks && table->used && chunk) return 0;
  free(chunk);
  free(table->chunks);
  free(table->used);
  *table = (struct hash_table){0};
  return -1;
}

void table_close(struct hash_table *table) {
  for (uint64_t i = 0; table->chunks && i < (uint64_t)1 << table->depth; i++)
    free(table->chunks[i]);
  free(table->chunks);
  free(table->used);
  *table = (struct hash_table){0};
}

/* Moves the slots of a chunk to where they belong now. */
static void move(struct hash_table *table, const struct slot *chunk, uint64_t slots) {
  for (uint64_t i = 0; i < slots; i++) {
    if (chunk[i].key.kind == IDENTITY_NOBODY) continue;
    uint32_t cell = table->of_pairs ? chunk[i].cell : 0;
    uint64_t place = table_place(table, chunk[i].key, cell);
    struct slot *to = table->of_pairs ? table_find_pair(table, chunk[i].key, cell, place)
                                      : table_find(table, chunk[i].key, place);
    *to = chunk[i];
    table->used[table_chunk(table, place)]++;
  }
}

/* The only chunk, in one of twice the size. */
static int grow_chunk(struct hash_table *table) {
  uint64_t slots = table->mask + 1;
  struct slot *before = table->chunks[0], *fresh = memory_table(2 * slots * sizeof *fresh);
  if (!fresh) return -1;
  table->chunks[0] = fresh;
  table->used[0] = 0;
  table->mask = 2 * slots - 1;
  move(table, before, slots);
  free(before);
  return 0;
}

/* Makes room for twice as many chunks in the directory. */
static int grow_directory(struct hash_table *table, size_t chunks) {
  struct slot **directory = realloc(table->chunks, sizeof *directory * 2 * chunks);
  if (directory) table->chunks = directory;
  uint32_t *used = realloc(table->used, sizeof *used * 2 * chunks);
  if (used) table->used = used;
  return directory && used ? 0 : -1;
}

/* Every chunk in two, from the last to the first; each leaves its memory to the next. */
static int split(struct hash_table *table) {
  size_t chunks = (size_t)1 << table->depth, spare = 0, size = CHUNK_SLOTS * sizeof(struct slot);
  if (table->depth == MOST_DEPTH || grow_directory(table, chunks)) return -1;
  struct slot **spares = malloc(sizeof *spares * (chunks + 1));
  while (spares && spare <= chunks && (spares[spare] = memory_table(size)) != 0) spare++;
  int failed = spare <= chunks;
  table->depth += !failed;
  for (size_t i = chunks; i-- > 0 && !failed;) {
    struct slot *before = table->chunks[i];
    for (size_t half = 2 * i; half <= 2 * i + 1; half++) {
      table->chunks[half] = spares[--spare];
      table->used[half] = 0;
    }
    move(table, before, CHUNK_SLOTS);
    memset(before, 0, size);
    spares[spare++] = before;
  }
  while (spare > 0) free(spares[--spare]);
  free(spares);
  return failed ? -1 : 0;
}

int table_reserve(struct hash_table *table) {
  while (table->full) {
    if (table->mask + 1 < CHUNK_SLOTS ? grow_chunk(table) : split(table)) return -1;
    table->full = 0;
    for (size_t i = 0; i < (size_t)1 << table->depth; i++)
      table->full |= table->used[i] > (table->mask + 1) / 4 * 3;
  }
  return 0;
}

const struct slot *table_next(const struct hash_table *table, uint64_t *at) {
  uint64_t slots = table->mask + 1, end = slots << table->depth;
  while (*at < end) {
    const struct slot *slot = &table->chunks[*at / slots][*at % slots];
    ++*at;
    if (slot->key.kind != IDENTITY_NOBODY) return slot;
  }
  return 0;
}
