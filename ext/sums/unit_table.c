/* unit_table.c: see sums.h. Tests: tests/sums/test_unit_table.c */
#include "sums/sums.h"

#include <string.h>

#define ZERO ((uint64_t)1 << 63) /* the mark of a used slot whose number is 0 */
/* A quarter of the lines of the first chunk has more slots than a batch has rows, so a batch fits
** into a chunk that is three quarters full. */
#define FIRST_LINES ((uint64_t)1 << 8)
#define LINE_BYTES  (sizeof(uint64_t) * TABLE_WORDS)
#define CHUNK_LINES (MEMORY_HUGE_PAGE / LINE_BYTES)
#define MOST_DEPTH  31

int unit_table_open(struct unit_table *table, const struct secret *secret, int of_integers) {
  *table = (struct unit_table){.secret = secret,
                               .chunks = calloc(1, sizeof *table->chunks),
                               .used = calloc(1, sizeof *table->used),
                               .mask = FIRST_LINES - 1,
                               .of_integers = of_integers};
  if (table->chunks) table->chunks[0] = memory_table(FIRST_LINES * LINE_BYTES);
  if (table->chunks && table->used && table->chunks[0]) return 1;
  unit_table_close(table);
  return 0;
}

void unit_table_close(struct unit_table *table) {
  for (uint64_t i = 0; table->chunks && i < (uint64_t)1 << table->depth; i++)
    memory_table_free(table->chunks[i], (table->mask + 1) * LINE_BYTES);
  free(table->chunks);
  free(table->used);
  *table = (struct unit_table){0};
}

void unit_table_clear(struct unit_table *table) {
  for (uint64_t i = 0; i < (uint64_t)1 << table->depth; i++) {
    memset(table->chunks[i], 0, (table->mask + 1) * LINE_BYTES);
    table->used[i] = 0;
  }
}

/* ---- slots ----------------------------------------------------------------------------------- */

static inline size_t words_of(int of_integers) {
  return of_integers ? 2 : 4;
}

static inline unsigned is_of(const uint64_t *slot, struct identity key, int of_integers) {
  return (slot[0] == key.low) & (of_integers || slot[2] == key.kind);
}

/* Returns the slot that holds a key in a line, or else the first empty slot, or null if other keys
** fill the line. It compares all slots, so that no branch depends on the position of the key. An
** empty slot contains the same words as the key 0, which may use an empty slot. */
static inline uint64_t *find_in_line(uint64_t *line, struct identity key, int of_integers) {
  size_t words = words_of(of_integers);
  unsigned own = is_of(line, key, of_integers) | is_of(line + words, key, of_integers) << 1;
  if (of_integers) own |= is_of(line + 4, key, 1) << 2 | is_of(line + 6, key, 1) << 3;
  if (own) return line + (size_t)__builtin_ctz(own) * words;
  for (size_t at = 0; at < TABLE_WORDS; at += words) {
    if (!line[at + 1]) return line + at;
  }
  return 0;
}

/* Returns the line after `line` in the chunk of a key. After the last line comes the first one. */
static uint64_t *next_line(const struct unit_table *table, const uint64_t *line,
                           struct identity key) {
  uint64_t *chunk = table->chunks[unit_table_chunk(table, unit_table_place(table, key))];
  return &chunk[(((uint64_t)(line - chunk) / TABLE_WORDS + 1) & table->mask) * TABLE_WORDS];
}

static inline uint64_t *find_as(const struct unit_table *table, struct identity key,
                                int of_integers) {
  uint64_t *slot, *line = unit_table_line(table, key);
  while (!(slot = find_in_line(line, key, of_integers))) line = next_line(table, line, key);
  return slot;
}

/* Calls find_as() with a constant, so that the compiler makes one copy for each width of slots. */
static uint64_t *find(const struct unit_table *table, struct identity key) {
  return table->of_integers ? find_as(table, key, 1) : find_as(table, key, 0);
}

/* Gives an empty slot to a key. Sets table->full if its chunk is then more than 3/4 full. */
static void enter(struct unit_table *table, uint64_t *slot, struct identity key, uint64_t mark) {
  slot[0] = key.low;
  slot[1] = mark;
  if (!table->of_integers) slot[2] = key.kind;
  uint64_t slots = (table->mask + 1) * TABLE_WORDS / words_of(table->of_integers);
  table->full |=
      ++table->used[unit_table_chunk(table, unit_table_place(table, key))] > slots / 4 * 3;
}

static struct identity key_of(const struct unit_table *table, const uint64_t *slot) {
  return (struct identity){table->of_integers ? IDENTITY_INTEGER : slot[2], slot[0]};
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* Enters all keys of an old chunk into the grown table, in the order of their lines. */
static void move(struct unit_table *table, const uint64_t *chunk, uint64_t lines) {
  size_t words = words_of(table->of_integers);
  for (const uint64_t *slot = chunk; slot < chunk + lines * TABLE_WORDS; slot += words) {
    if (!slot[1]) continue;
    struct identity key = key_of(table, slot);
    enter(table, find(table, key), key, slot[1]);
  }
}

/* Moves the keys of the only chunk into a new chunk of twice the size. */
static int grow_chunk(struct unit_table *table) {
  uint64_t lines = table->mask + 1;
  uint64_t *before = table->chunks[0], *fresh = memory_table(2 * lines * LINE_BYTES);
  if (!fresh) return 0;
  table->chunks[0] = fresh;
  table->used[0] = 0;
  table->mask = 2 * lines - 1;
  move(table, before, lines);
  memory_table_free(before, lines * LINE_BYTES);
  return 1;
}

/* Makes room for twice as many chunks in the directory. */
static int grow_directory(struct unit_table *table, size_t chunks) {
  uint64_t **directory = realloc(table->chunks, sizeof *directory * 2 * chunks);
  if (directory) table->chunks = directory;
  uint32_t *used = realloc(table->used, sizeof *used * 2 * chunks);
  if (used) table->used = used;
  return directory && used;
}

/* Splits every chunk in two, from the last to the first. Its memory is used for the next split. */
static int split(struct unit_table *table) {
  size_t chunks = (size_t)1 << table->depth, spare = 0;
  if (table->depth == MOST_DEPTH || !grow_directory(table, chunks)) return 0;
  uint64_t **spares = malloc(sizeof *spares * (chunks + 1));
  while (spares && spare <= chunks && (spares[spare] = memory_table(MEMORY_HUGE_PAGE)) != 0)
    spare++;
  int is_room = spare > chunks;
  table->depth += is_room;
  for (size_t i = chunks; i-- > 0 && is_room;) {
    uint64_t *before = table->chunks[i];
    for (size_t half = 2 * i; half <= 2 * i + 1; half++) {
      table->chunks[half] = spares[--spare];
      table->used[half] = 0;
    }
    move(table, before, CHUNK_LINES);
    memset(before, 0, MEMORY_HUGE_PAGE);
    spares[spare++] = before;
  }
  while (spare > 0) memory_table_free(spares[--spare], MEMORY_HUGE_PAGE);
  free(spares);
  return is_room;
}

/* Grows the table until a batch fits into each chunk. Returns 1, or 0 if memory runs out. */
static int grow(struct unit_table *table) {
  while (table->full) {
    table->full = 0;
    if (!(table->mask + 1 < CHUNK_LINES ? grow_chunk(table) : split(table))) {
      table->full = 1; /* no room was made, so a chunk is still full */
      return 0;
    }
  }
  for (int i = 0; i < table->waiting; i++)
    table->batch[i].line = unit_table_line(table, table->batch[i].key);
  return 1;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static inline int add(struct unit_table *table, uint64_t *slot, const struct addend *row,
                      take_number *take, void *context) {
  if (!slot[1]) enter(table, slot, row->key, ZERO);
  slot[1] += (uint64_t)row->amount;
  int64_t number = (int64_t)(slot[1] - ZERO);
  if (number <= TABLE_MOST && number >= -TABLE_MOST) return 1;
  slot[1] = ZERO;
  return take && take(context, row->key, number);
}

/* Adds the waiting rows. If the line of a row is full, the row waits again, for the next line. */
static inline int pass(struct unit_table *table, int of_integers, take_number *take,
                       void *context) {
  int waiting = table->waiting, failed = 0;
  table->waiting = 0;
  for (int i = 0; i < waiting; i++) {
    struct addend row = table->batch[i];
    uint64_t *slot = find_in_line(row.line, row.key, of_integers);
    if (slot) {
      failed |= !add(table, slot, &row, take, context);
    } else {
      row.line = next_line(table, row.line, row.key);
      memory_prefetch(row.line);
      table->batch[table->waiting++] = row;
    }
  }
  return !failed;
}

int unit_table_flush(struct unit_table *table, take_number *take, void *context) {
  table->failed |= table->full && !grow(table);
  while (table->waiting > 0 && !table->failed)
    table->failed |=
        table->of_integers ? !pass(table, 1, take, context) : !pass(table, 0, take, context);
  table->waiting = 0;
  return !table->failed;
}

int unit_table_get(const struct unit_table *table, struct identity key, int64_t *number) {
  const uint64_t *slot = find(table, key);
  *number = slot[1] ? (int64_t)(slot[1] - ZERO) : 0;
  return slot[1] != 0;
}

int unit_table_each(const struct unit_table *table, take_number *take, void *context) {
  size_t words = words_of(table->of_integers);
  for (uint64_t i = 0; i < (uint64_t)1 << table->depth; i++) {
    const uint64_t *end = table->chunks[i] + (table->mask + 1) * TABLE_WORDS;
    for (const uint64_t *slot = table->chunks[i]; slot < end; slot += words) {
      if (slot[1] && !take(context, key_of(table, slot), (int64_t)(slot[1] - ZERO))) return 0;
    }
  }
  return 1;
}

/* ---- numbers of identities ------------------------------------------------------------------- */

int numbering_open(struct numbering *numbering, const struct secret *secret) {
  numbering->others = (struct unit_table){0};
  if (unit_table_open(&numbering->integers, secret, 1) &&
      unit_table_open(&numbering->others, secret, 0))
    return 1;
  numbering_close(numbering);
  return 0;
}

void numbering_close(struct numbering *numbering) {
  unit_table_close(&numbering->integers);
  unit_table_close(&numbering->others);
}

int64_t numbering_get(const struct numbering *numbering, struct identity key) {
  int64_t number;
  int is_integer = key.kind == IDENTITY_INTEGER;
  return unit_table_get(is_integer ? &numbering->integers : &numbering->others, key, &number)
             ? number
             : -1;
}

int64_t numbering_put(struct numbering *numbering, struct identity key, int64_t number) {
  struct unit_table *table =
      key.kind == IDENTITY_INTEGER ? &numbering->integers : &numbering->others;
  if (table->full && !grow(table)) return -1;
  uint64_t *slot = find(table, key);
  if (!slot[1]) enter(table, slot, key, ZERO + (uint64_t)number);
  return (int64_t)(slot[1] - ZERO);
}
