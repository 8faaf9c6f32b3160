/*
** cells.c: see cells.h.
**
** One table maps identities to cells: those of row values, and those of names, the texts that keys are shown
** as, through which the integer 5, the real 5.0 and the text '5' meet. The two never mix: the cell of a value
** is a function of the value alone, whatever other keys there are.
*/
#include "release/cells.h"

#include <stdlib.h>
#include <string.h>

#include "release/memory.h"

struct entry {
  struct identity key;
  int cell;
};

struct cells {
  const struct secret *secret;
  struct entry *entries; /* open addressing, linear probing, at most half full */
  uint64_t mask, used;
  struct identity *named; /* identity of each cell's text */
  char **texts;
  unsigned char *kept;
  int count, room;
  int collecting;
};

static struct entry *find(const struct cells *cells, struct identity key) {
  uint64_t place = identity_mix(cells->secret, key, 0);
  struct entry *entry = &cells->entries[place & cells->mask];
  while (entry->key.kind != IDENTITY_NOBODY && !identity_same(entry->key, key)) {
    place++;
    entry = &cells->entries[place & cells->mask];
  }
  return entry;
}

/* Keeps the table at most half full. Returns -1 when memory ran out. */
static int make_room(struct cells *cells) {
  if (cells->entries && (cells->used + 1) * 2 <= cells->mask + 1) return 0;
  uint64_t old = cells->entries ? cells->mask + 1 : 0, size = old ? old * 2 : 64;
  struct entry *before = cells->entries, *fresh = memory_table(size * sizeof *fresh);
  if (!fresh) return -1;
  cells->entries = fresh;
  cells->mask = size - 1;
  for (uint64_t i = 0; i < old; i++) {
    if (before[i].key.kind != IDENTITY_NOBODY) *find(cells, before[i].key) = before[i];
  }
  free(before);
  return 0;
}

static int enter(struct cells *cells, struct identity key, int cell) {
  if (make_room(cells)) return -1;
  struct entry *entry = find(cells, key);
  cells->used += entry->key.kind == IDENTITY_NOBODY;
  *entry = (struct entry){key, cell};
  return 0;
}

/* Makes a cell of a text; its number, or CELL_FAILED. */
static int add_cell(struct cells *cells, struct identity named, const char *text) {
  if (cells->count == cells->room) {
    int room = cells->room * 2 + 64;
    char **texts = realloc(cells->texts, sizeof *texts * (size_t)room);
    if (texts) cells->texts = texts;
    struct identity *identities = realloc(cells->named, sizeof *identities * (size_t)room);
    if (identities) cells->named = identities;
    unsigned char *kept = realloc(cells->kept, (size_t)room);
    if (kept) cells->kept = kept;
    if (!texts || !identities || !kept) return CELL_FAILED;
    cells->room = room;
  }
  size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (!copy || enter(cells, named, cells->count)) {
    free(copy);
    return CELL_FAILED;
  }
  memcpy(copy, text, size);
  cells->texts[cells->count] = copy;
  cells->named[cells->count] = named;
  cells->kept[cells->count] = 0;
  return cells->count++;
}

struct cells *cells_open(const struct secret *secret, char *const *keys, int count,
                         int collecting) {
  struct cells *cells = calloc(1, sizeof *cells);
  if (!cells) return 0;
  cells->secret = secret;
  int failed = make_room(cells);
  for (int i = 0; i < count && !failed; i++)
    failed = add_cell(cells, identity_name(secret, keys[i]), keys[i]) < 0;
  cells->collecting = collecting;
  if (!failed) return cells;
  cells_close(cells);
  return 0;
}

void cells_close(struct cells *cells) {
  if (!cells) return;
  for (int i = 0; i < cells->count; i++) free(cells->texts[i]);
  free(cells->texts);
  free(cells->named);
  free(cells->kept);
  free(cells->entries);
  free(cells);
}

int cells_find(const struct cells *cells, struct identity key) {
  const struct entry *entry = find(cells, key);
  return entry->key.kind == IDENTITY_NOBODY ? CELL_NEW : entry->cell;
}

int cells_name(struct cells *cells, struct identity key, const char *text) {
  struct identity named = identity_name(cells->secret, text);
  int cell = cells_find(cells, named);
  if (cell == CELL_NEW) cell = cells->collecting ? add_cell(cells, named, text) : CELL_NONE;
  if (cell >= 0 && enter(cells, key, cell)) return CELL_FAILED;
  return cell;
}

int cells_count(const struct cells *cells) {
  return cells->count;
}

const char *cells_text(const struct cells *cells, int cell) {
  return cells->texts[cell];
}

void cells_keep(struct cells *cells, int cell) {
  cells->kept[cell] = 1;
}

int cells_is_kept(const struct cells *cells, int cell) {
  return cells->kept[cell];
}

uint64_t cells_hash(const struct cells *cells, int cell) {
  return cells->named[cell].low;
}
