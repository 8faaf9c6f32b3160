/* unit_rows.c: see unit_rows.h. Tests: tests/query/test_questions.py */
#include "query/unit_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* ---- memory ---------------------------------------------------------------------------------- */

int unit_rows_open(struct unit_rows *rows, int columns) {
  *rows = (struct unit_rows){.columns = columns};
  rows->indices = calloc((size_t)columns + 1, sizeof *rows->indices);
  return rows->indices != 0;
}

void unit_rows_close(struct unit_rows *rows) {
  for (int i = 0; rows->indices && i <= rows->columns; i++) {
    free(rows->indices[i].heads);
    free(rows->indices[i].next);
    free(rows->indices[i].hashes);
  }
  free(rows->indices);
  free(rows->cells);
  free(rows->rowids);
  free(rows->bytes);
  *rows = (struct unit_rows){0};
}

double unit_rows_bytes(const struct unit_rows *rows) {
  double each = (double)((size_t)rows->columns * sizeof(struct cell) + sizeof(int64_t));
  return (double)rows->used + (double)rows->count * each;
}

void unit_rows_clear(struct unit_rows *rows) {
  rows->count = rows->used = 0;
  for (int i = 0; i <= rows->columns; i++) rows->indices[i].is_built = 0;
}

static int make_room(struct unit_rows *rows) {
  if (rows->count < rows->room) return 1;
  size_t room = rows->room * 2 + 16;
  if (room >= NO_ROW) return 0;
  struct cell *cells = realloc(rows->cells, sizeof *cells * room * (size_t)(rows->columns + 1));
  if (cells) rows->cells = cells;
  int64_t *rowids = cells ? realloc(rows->rowids, sizeof *rowids * room) : 0;
  if (!rowids) return 0;
  rows->rowids = rowids;
  rows->room = room;
  return 1;
}

static int add_bytes(struct unit_rows *rows, struct cell *cell, const void *bytes) {
  size_t size = (size_t)cell->size;
  if (size > rows->bytes_room - rows->used) {
    size_t room = (rows->used + size) * 2 + 256;
    unsigned char *grown = realloc(rows->bytes, room);
    if (!grown) return 0;
    rows->bytes = grown;
    rows->bytes_room = room;
  }
  if (size) memcpy(rows->bytes + rows->used, bytes, size);
  cell->as.offset = rows->used;
  rows->used += size;
  return 1;
}

/* ---- adding and giving rows ------------------------------------------------------------------ */

static int take_cell(struct unit_rows *rows, struct cell *cell, sqlite3_value *value) {
  const void *bytes;
  *cell = (struct cell){.type = sqlite3_value_type(value)};
  switch (cell->type) {
  case SQLITE_INTEGER: cell->as.integer = sqlite3_value_int64(value); return 1;
  case SQLITE_FLOAT: cell->as.real = sqlite3_value_double(value); return 1;
  case SQLITE_NULL: return 1;
  case SQLITE_TEXT:
    /* get the bytes before the size, because SQLite may convert a text */
    bytes = sqlite3_value_text(value);
    if (!bytes) return 0;
    break;
  default: bytes = sqlite3_value_blob(value); break;
  }
  cell->size = sqlite3_value_bytes(value);
  return (bytes || !cell->size) && add_bytes(rows, cell, bytes);
}

int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places) {
  if (!make_room(rows)) return 0;
  struct cell *cells = rows->cells + rows->count * (size_t)rows->columns;
  for (int i = 0; i < rows->columns; i++) {
    cells[i] = (struct cell){.type = SQLITE_NULL};
    if (places[i] >= 0 && !take_cell(rows, &cells[i], sqlite3_column_value(row, first + places[i])))
      return 0;
  }
  rows->rowids[rows->count++] = rowid;
  return 1;
}

void unit_rows_result(const struct unit_rows *rows, sqlite3_context *context, size_t row,
                      int column) {
  const struct cell *cell = &rows->cells[row * (size_t)rows->columns + (size_t)column];
  const char *bytes = (const char *)rows->bytes + (cell->size ? cell->as.offset : 0);
  switch (cell->type) {
  case SQLITE_INTEGER: sqlite3_result_int64(context, cell->as.integer); break;
  case SQLITE_FLOAT: sqlite3_result_double(context, cell->as.real); break;
  case SQLITE_TEXT:
    sqlite3_result_text(context, cell->size ? bytes : "", cell->size, SQLITE_STATIC);
    break;
  case SQLITE_BLOB:
    sqlite3_result_blob(context, cell->size ? bytes : "", cell->size, SQLITE_STATIC);
    break;
  default: sqlite3_result_null(context); break;
  }
}

/* ---- finding rows ---------------------------------------------------------------------------- */

/*
** Two values have the same hash if any comparison of SQLite treats them as equal. A comparison may
** convert a text to a number, or a number to a text of 15 digits. It may also ignore case and
** trailing spaces. A number near a whole number, and a text that starts with such a number,
** therefore have the hash of the whole number. All other numbers, and texts that start with another
** number, share one hash. But SQLite writes an infinite number as the text Inf or -Inf, so numbers
** near infinity have the hash of this text.
*/
#define OTHER_NUMBER 0x9e3779b9u

static uint32_t hash_bytes(const unsigned char *bytes, int size, int fold) {
  uint32_t hash = 2166136261u;
  for (int i = 0; i < size; i++) {
    unsigned char c = bytes[i];
    if (fold && !c) break; /* NOCASE ignores the bytes after a zero byte */
    if (fold && c >= 'A' && c <= 'Z') c = (unsigned char)(c + 32);
    hash = (hash ^ c) * 16777619u;
  }
  return hash ^ hash >> 15;
}

static uint32_t hash_integer(int64_t x) {
  uint64_t mixed = (uint64_t)x * 0x9e3779b97f4a7c15u;
  return (uint32_t)(mixed >> 32);
}

static uint32_t hash_real(double x) {
  /* No usual number lies at these limits or those of `near`, where a rounding error matters. */
  if (x > 1.2345e300) return hash_bytes((const unsigned char *)"inf", 3, 0);
  if (x < -1.2345e300) return hash_bytes((const unsigned char *)"-inf", 4, 0);
  double whole = nearbyint(x);
  double near = fmin(1.2345e-9 * (1 + fabs(whole)), 0.24371);
  if (!(fabs(x - whole) <= near) || !(fabs(whole) < 1e15)) return OTHER_NUMBER;
  return hash_integer((int64_t)whole);
}

static int is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

static int is_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Adds a digit to x, or to the scale if x has as many digits as a double can hold. */
static void add_digit(double *x, int *scale, unsigned char digit) {
  if (*x < 1e18) {
    *x = *x * 10 + (digit - '0');
  } else {
    ++*scale;
  }
}

/* Reads the number with which a text starts. Returns 0 if the text does not start with a number. */
static int number_at(const unsigned char *text, int size, double *number) {
  int i = 0, negative = 0, digits = 0, scale = 0;
  double x = 0;
  while (i < size && is_space(text[i])) i++;
  if (i < size && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  for (; i < size && is_digit(text[i]); i++, digits++) add_digit(&x, &scale, text[i]);
  if (i < size && text[i] == '.') {
    for (i++; i < size && is_digit(text[i]); i++, digits++, scale--) add_digit(&x, &scale, text[i]);
  }
  if (!digits) return 0;
  if (i + 1 < size && (text[i] == 'e' || text[i] == 'E')) {
    int minus = text[i + 1] == '-', power = 0;
    i += 1 + (minus || text[i + 1] == '+');
    for (; i < size && is_digit(text[i]) && power < 10000; i++)
      power = power * 10 + (text[i] - '0');
    scale += minus ? -power : power;
  }
  if (x > 0) x *= pow(10, scale); /* pow() may overflow */
  *number = negative ? -x : x;
  return 1;
}

static uint32_t hash_text(const unsigned char *text, int size) {
  double number;
  if (number_at(text, size, &number)) return hash_real(number);
  while (size && text[size - 1] == ' ') size--;
  return hash_bytes(text, size, 1);
}

static uint32_t hash_of(const struct unit_rows *rows, size_t row, int column) {
  if (column == rows->columns) return hash_real((double)rows->rowids[row]);
  const struct cell *cell = &rows->cells[row * (size_t)rows->columns + (size_t)column];
  const unsigned char *bytes = rows->bytes + (cell->size ? cell->as.offset : 0);
  switch (cell->type) {
  case SQLITE_INTEGER: return hash_real((double)cell->as.integer);
  case SQLITE_FLOAT: return hash_real(cell->as.real);
  case SQLITE_TEXT: return hash_text(bytes, cell->size);
  default: return hash_bytes(bytes, cell->size, 0);
  }
}

static uint32_t hash_value(sqlite3_value *value, int *failed) {
  int type = sqlite3_value_type(value);
  const void *bytes;
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) return hash_real(sqlite3_value_double(value));
  if (type == SQLITE_TEXT) {
    bytes = sqlite3_value_text(value);
    if (!bytes) *failed = 1;
    return bytes ? hash_text(bytes, sqlite3_value_bytes(value)) : 0;
  }
  bytes = sqlite3_value_blob(value);
  return hash_bytes(bytes, bytes ? sqlite3_value_bytes(value) : 0, 0);
}

static int index_room(struct row_index *index, size_t rows) {
  size_t buckets = 16;
  while (buckets < rows) buckets *= 2;
  if (buckets > index->heads_room) {
    uint32_t *heads = realloc(index->heads, sizeof *heads * buckets);
    if (!heads) return 0;
    index->heads = heads;
    index->heads_room = buckets;
  }
  if (rows > index->rows_room) {
    uint32_t *next = realloc(index->next, sizeof *next * rows);
    if (next) index->next = next;
    uint32_t *hashes = next ? realloc(index->hashes, sizeof *hashes * rows) : 0;
    if (!hashes) return 0;
    index->hashes = hashes;
    index->rows_room = rows;
  }
  index->buckets = buckets;
  return 1;
}

/*
** Builds the index on a column. Adds the last row first, so that every bucket lists its rows in
** order. Returns 0 when out of memory.
*/
static int build(struct unit_rows *rows, int column) {
  struct row_index *index = &rows->indices[column];
  if (index->is_built) return 1;
  if (!index_room(index, rows->count)) return 0;
  memset(index->heads, 0xff, sizeof *index->heads * index->buckets);
  for (size_t i = rows->count; i-- > 0;) {
    uint32_t hash = hash_of(rows, i, column), *head = &index->heads[hash & (index->buckets - 1)];
    index->hashes[i] = hash;
    index->next[i] = *head;
    *head = (uint32_t)i;
  }
  index->is_built = 1;
  return 1;
}

static uint32_t same_hash(const struct row_index *index, uint32_t row, uint32_t hash) {
  while (row != NO_ROW && index->hashes[row] != hash) row = index->next[row];
  return row;
}

uint32_t unit_rows_find(struct unit_rows *rows, int column, sqlite3_value *value, uint32_t *hash,
                        int *failed) {
  struct row_index *index = &rows->indices[column];
  *hash = hash_value(value, failed);
  if (!build(rows, column)) *failed = 1;
  if (*failed || sqlite3_value_type(value) == SQLITE_NULL) return NO_ROW;
  return same_hash(index, index->heads[*hash & (index->buckets - 1)], *hash);
}

uint32_t unit_rows_next(const struct unit_rows *rows, int column, uint32_t row, uint32_t hash) {
  const struct row_index *index = &rows->indices[column];
  return same_hash(index, index->next[row], hash);
}
