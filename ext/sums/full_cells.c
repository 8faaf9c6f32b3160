/*
** full_cells.c: a hash table with linear probing; see full_cells.h.
** Tests: tests/mechanism/test_cross_tables.py
*/
#include "sums/full_cells.h"

#include <limits.h>
#include <stdlib.h>

#define FIRST_BITS 8

struct full_cells {
  int is_direct;  /* a cell is its own number, and `count` is the size of the full table */
  int64_t *cells; /* by number; has room for half of the slots */
  int *slots;     /* number + 1, or 0 for an empty slot */
  int bits;       /* there are 2^bits slots */
  int count;
  int64_t last; /* the cell of the last call and its number: rows are often sorted */
  int last_number;
};

/* Returns the first slot of a cell: the upper bits of a product (Fibonacci hashing). */
static size_t slot_of(const struct full_cells *table, int64_t cell) {
  return (size_t)(((uint64_t)cell * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - table->bits));
}

static size_t next(const struct full_cells *table, size_t slot) {
  return (slot + 1) & (((size_t)1 << table->bits) - 1);
}

static void put(struct full_cells *table, int number) {
  size_t slot = slot_of(table, table->cells[number]);
  while (table->slots[slot]) slot = next(table, slot);
  table->slots[slot] = number + 1;
}

/* Makes a table of 2^bits slots. Returns 0 and changes nothing if memory runs out. */
static int resize(struct full_cells *table, int bits) {
  int *slots = calloc((size_t)1 << bits, sizeof *slots);
  int64_t *cells = realloc(table->cells, sizeof *cells << (bits - 1));
  if (cells) table->cells = cells;
  if (!slots || !cells) {
    free(slots);
    return 0;
  }
  free(table->slots);
  table->slots = slots;
  table->bits = bits;
  for (int i = 0; i < table->count; i++) put(table, i);
  return 1;
}

struct full_cells *full_cells_open(int64_t size) {
  struct full_cells *table = calloc(1, sizeof *table);
  if (!table) return 0;
  table->last = -1;
  table->is_direct = size <= FULL_CELLS_DIRECT;
  if (table->is_direct) table->count = (int)size;
  if (table->is_direct || resize(table, FIRST_BITS)) return table;
  full_cells_close(table);
  return 0;
}

void full_cells_close(struct full_cells *table) {
  if (!table) return;
  free(table->cells);
  free(table->slots);
  free(table);
}

int full_cells_number(struct full_cells *table, int64_t cell) {
  if (table->is_direct) return (int)cell;
  if (cell == table->last) return table->last_number;
  size_t slot = slot_of(table, cell);
  while (table->slots[slot] && table->cells[table->slots[slot] - 1] != cell)
    slot = next(table, slot);
  int number = table->slots[slot] - 1;
  if (number < 0) {
    if (table->count == INT_MAX - 1) return -1;
    if (table->count == 1 << (table->bits - 1) && !resize(table, table->bits + 1)) return -1;
    number = table->count++;
    table->cells[number] = cell;
    put(table, number);
  }
  table->last = cell;
  table->last_number = number;
  return number;
}

int full_cells_count(const struct full_cells *table) {
  return table->count;
}

int64_t full_cells_cell(const struct full_cells *table, int number) {
  return table->is_direct ? number : table->cells[number];
}
