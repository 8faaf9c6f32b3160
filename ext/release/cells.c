/*
** cells.c: see cells.h.
**
** One table maps identities to cells: those of row values, and those of names, the texts that keys
** are shown as, through which the integer 5, the real 5.0 and the text '5' meet. The two never mix:
** the cell of a value is a function of the value alone, whatever other keys there are.
*/
#include "release/cells.h"

#include <stdlib.h>
#include <string.h>

#include "release/table.h"

struct cells {
  const struct secret *secret;
  struct hash_table integers, others; /* numbers of cells */
  struct identity *named;             /* identity of each cell's text */
  char **texts;
  unsigned char *kept;
  int count, room;
  int collecting;
};

/* A number is the sum of what is added: of one number, here, as no key is entered twice. */
static int enter(struct cells *cells, struct identity key, int cell) {
  struct hash_table *table = key.kind == IDENTITY_INTEGER ? &cells->integers : &cells->others;
  table_add(table, key, cell);
  return table_flush(table, 0, 0);
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
  int failed = table_open(&cells->integers, secret, 1) || table_open(&cells->others, secret, 0);
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
  table_close(&cells->integers);
  table_close(&cells->others);
  free(cells);
}

int cells_find(const struct cells *cells, struct identity key) {
  const struct hash_table *table = key.kind == IDENTITY_INTEGER ? &cells->integers : &cells->others;
  int64_t cell;
  return table_get(table, key, &cell) ? (int)cell : CELL_NEW;
}

int cells_name(struct cells *cells, struct identity key, const char *text) {
  struct identity named = identity_name(cells->secret, text);
  int cell = cells_find(cells, named);
  if (cell == CELL_NEW) cell = cells->collecting ? add_cell(cells, named, text) : CELL_NONE;
  int is_new = cell >= 0 && cells_find(cells, key) == CELL_NEW;
  if (is_new && enter(cells, key, cell)) return CELL_FAILED;
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

void cells_forget(struct cells *cells) {
  for (int i = 0; i < cells->count; i++) cells->kept[i] = 0;
}

int cells_is_kept(const struct cells *cells, int cell) {
  return cells->kept[cell];
}

uint64_t cells_hash(const struct cells *cells, int cell) {
  return cells->named[cell].low;
}
