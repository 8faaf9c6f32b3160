/* group_keys.c: see sums.h.
**
** Two sorts of identities have the number of a cell: those of keys in rows, and those of names.
** A name is the published text of a key. The integer 5, the real 5.0 and the text '5' share the
** name '5' and therefore one cell. An identity of a key in a row never equals an identity of a
** name. The cell of a key in a row therefore depends on the key's value alone, whatever other
** keys there are. Tests: tests/mechanism/test_groups.py */
#include "sums/sums.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Short texts whose cells were looked up last. Each text has one place. */
#define NOTES      256
#define SHORT_TEXT 16
struct note {
  uint64_t first, last; /* note_of() */
  int size, cell;       /* the size is 0 in an empty place */
};

struct group_keys {
  const struct secret *secret;
  struct numbering numbers;    /* the cell of each identity */
  int small[GROUP_KEYS_SMALL]; /* small integers are frequent keys, and this is faster */
  struct note notes[NOTES];
  struct identity *named; /* identity of each cell's text */
  char **texts;
  atomic_uchar *kept; /* several threads may mark cells */
  int count, room;
  int collecting;
};

static inline int is_small(struct identity key) {
  return key.kind == IDENTITY_INTEGER && key.low < GROUP_KEYS_SMALL;
}

/* Stores the number of a key's cell. Returns 0 if memory runs out. */
static int enter(struct group_keys *cells, struct identity key, int cell) {
  if (!is_small(key)) return numbering_put(&cells->numbers, key, cell) >= 0;
  cells->small[key.low] = cell;
  return 1;
}

/* Makes a cell for a text. Returns its number, or CELL_FAILED. */
static int add_cell(struct group_keys *cells, struct identity named, const char *text) {
  if (cells->count == cells->room) {
    size_t room = (size_t)cells->room * 2 + 64;
    if (!memory_resize(&cells->texts, sizeof *cells->texts * room) ||
        !memory_resize(&cells->named, sizeof *cells->named * room) ||
        !memory_resize(&cells->kept, sizeof *cells->kept * room))
      return CELL_FAILED;
    cells->room = (int)room;
  }
  size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (!copy || !enter(cells, named, cells->count)) {
    free(copy);
    return CELL_FAILED;
  }
  memcpy(copy, text, size);
  cells->texts[cells->count] = copy;
  cells->named[cells->count] = named;
  atomic_init(&cells->kept[cells->count], 0);
  return cells->count++;
}

struct group_keys *group_keys_open(const struct secret *secret, char *const *keys, int count,
                                   int collecting) {
  struct group_keys *cells = calloc(1, sizeof *cells);
  if (!cells) return 0;
  cells->secret = secret;
  for (int i = 0; i < GROUP_KEYS_SMALL; i++) cells->small[i] = CELL_NEW;
  int made = numbering_open(&cells->numbers, secret);
  for (int i = 0; i < count && made; i++)
    made = add_cell(cells, identity_name(secret, keys[i]), keys[i]) >= 0;
  cells->collecting = collecting;
  if (made) return cells;
  group_keys_close(cells);
  return 0;
}

void group_keys_close(struct group_keys *cells) {
  if (!cells) return;
  for (int i = 0; i < cells->count; i++) free(cells->texts[i]);
  free(cells->texts);
  free(cells->named);
  free(cells->kept);
  numbering_close(&cells->numbers);
  free(cells);
}

const int *group_keys_small(const struct group_keys *cells) {
  return cells->small;
}

int group_keys_find(const struct group_keys *cells, struct identity key) {
  if (is_small(key)) return cells->small[key.low];
  int64_t cell = numbering_get(&cells->numbers, key);
  return cell < 0 ? CELL_NEW : (int)cell;
}

/* Returns the note of a short text without its cell. Notes of different texts differ. The size is
** stored plus 1, so that no text has an empty note. */
static struct note note_of(const unsigned char *bytes, size_t size) {
  struct note note = {0, 0, (int)size + 1, 0};
  if (size >= 8) {
    memcpy(&note.first, bytes, 8);
    memcpy(&note.last, bytes + size - 8, 8);
  } else if (size >= 4) {
    uint32_t first, last;
    memcpy(&first, bytes, 4);
    memcpy(&last, bytes + size - 4, 4);
    note.first = first;
    note.last = last;
  } else if (size) {
    note.first = bytes[0];
    note.last = (uint64_t)bytes[size / 2] << 8 | bytes[size - 1];
  }
  return note;
}

static size_t place_of(struct note note) {
  uint64_t mixed = (note.first ^ note.last << 7 ^ note.last >> 9) + (uint64_t)note.size;
  return (size_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

int group_keys_recall(const struct group_keys *cells, const void *bytes, size_t size) {
  if (size > SHORT_TEXT) return CELL_NEW;
  struct note note = note_of(bytes, size);
  const struct note *found = &cells->notes[place_of(note)];
  int is_same = found->size == note.size && found->first == note.first && found->last == note.last;
  return is_same ? found->cell : CELL_NEW;
}

void group_keys_note(struct group_keys *cells, const void *bytes, size_t size, int cell) {
  if (size > SHORT_TEXT) return;
  struct note note = note_of(bytes, size);
  note.cell = cell;
  cells->notes[place_of(note)] = note;
}

int group_keys_name(struct group_keys *cells, struct identity key, const char *text) {
  struct identity named = identity_name(cells->secret, text);
  int cell = group_keys_find(cells, named);
  if (cell == CELL_NEW) cell = cells->collecting ? add_cell(cells, named, text) : CELL_NONE;
  int is_kept = cell >= 0 || (cell == CELL_NONE && is_small(key));
  int is_new = is_kept && group_keys_find(cells, key) == CELL_NEW;
  if (is_new && !enter(cells, key, cell)) return CELL_FAILED;
  return cell;
}

int group_keys_count(const struct group_keys *cells) {
  return cells->count;
}

const char *group_keys_text(const struct group_keys *cells, int cell) {
  return cells->texts[cell];
}

void group_keys_keep(struct group_keys *cells, const uint32_t *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    atomic_uchar *kept = &cells->kept[list[i]];
    /* Most cells are marked already. Reading alone leaves them in the caches of all threads. */
    if (!atomic_load_explicit(kept, memory_order_relaxed))
      atomic_store_explicit(kept, 1, memory_order_relaxed);
  }
}

void group_keys_forget(struct group_keys *cells) {
  for (int i = 0; i < cells->count; i++) cells->kept[i] = 0;
}

int group_keys_is_kept(const struct group_keys *cells, int cell) {
  return cells->kept[cell];
}

uint64_t group_keys_hash(const struct group_keys *cells, int cell) {
  return cells->named[cell].low;
}
