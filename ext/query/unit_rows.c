/*
** unit_rows.c: see unit_rows.h.
** Tests: tests/query/test_random_comparisons.py, tests/query/test_question_steps.py
*/
#include "query/unit_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* ---- memory ---------------------------------------------------------------------------------- */

void unit_rows_open(struct unit_rows *rows, int columns) {
  *rows = (struct unit_rows){.columns = columns};
}

void unit_rows_close(struct unit_rows *rows) {
  for (int i = 0; i < rows->index_count; i++) {
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
  for (int i = 0; i < rows->index_count; i++) rows->indices[i].is_built = 0;
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
** convert a text that is a number as a whole to this number, or a number to a text of 15 digits or
** more. It may also ignore case and trailing spaces.
**
** So a number that is not whole shares its hash with all numbers that differ in the tenth digit or
** later, and near a whole number it has the hash of the whole number. (SQLite writes an infinite
** number as the text Inf or -Inf, so numbers near infinity have the hash of this text.) Some
** numbers are odd: those that lie so close to the limit of such a class that a number on the other
** side may have the same text, and those of at least LARGE that are no integers. A search for an
** odd number reads all rows. So does a search for an integer of at least LARGE, if a row has an odd
** number.
*/
#define LARGE 1e12
#define DIGITS_OFF 2e-14 /* the relative error of a text of 15 digits, and some room */

struct hashed {
  uint32_t hash;
  int is_odd, is_large;
};

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

static struct hashed hashed_integer(int64_t x) {
  return (struct hashed){hash_integer(x), 0, x >= (int64_t)LARGE || x <= -(int64_t)LARGE};
}

/* The limits of classes are such that no usual number lies near them. */
static struct hashed hashed_real(double x) {
  double size = fabs(x), whole = nearbyint(x), gap = fabs(x - whole);
  if (size > 1.2345e300)
    return x > 0 ? (struct hashed){hash_bytes((const unsigned char *)"inf", 3, 0), 0, 0}
                 : (struct hashed){hash_bytes((const unsigned char *)"-inf", 4, 0), 0, 0};
  if (gap == 0 && size < 1e15) return hashed_integer((int64_t)x);
  if (!(size < LARGE)) return (struct hashed){0, 1, 1};
  double near = fmin(1.2345e-9 * (1 + fabs(whole)), 0.24371);
  struct hashed found = {0, fabs(gap - near) <= DIGITS_OFF * (1 + size), 0};
  if (gap <= near) {
    found.hash = hash_integer((int64_t)whole);
    return found;
  }
  int power;
  double part = frexp(size * 1.23456789, &power), place = part * 0x1p31 + 0.3719;
  double low = floor(place), off = place - low, limit = DIGITS_OFF * 0x1p31;
  found.is_odd |= off < limit || off > 1 - limit;
  found.is_odd |= part < 0.5 + DIGITS_OFF || part > 1 - DIGITS_OFF;
  int64_t number = (int64_t)low * 4096 + power;
  found.hash = hash_integer(x > 0 ? number : -number);
  return found;
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

/*
** Reads the number that a text is as a whole. Returns 0 if the text is no number. Sets *whole to 1
** if it has up to 18 digits and nothing else, so that *number is exact.
*/
static int number_of(const unsigned char *text, int size, double *number, int64_t *whole) {
  int i = 0, negative = 0, digits = 0, scale = 0;
  double x = 0;
  *whole = 0;
  while (i < size && is_space(text[i])) i++;
  if (i < size && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  for (; i < size && is_digit(text[i]); i++, digits++) {
    if (digits < 18) *whole = *whole * 10 + (text[i] - '0');
    add_digit(&x, &scale, text[i]);
  }
  int is_whole = digits <= 18;
  if (i < size && text[i] == '.') {
    is_whole = 0;
    for (i++; i < size && is_digit(text[i]); i++, digits++, scale--) add_digit(&x, &scale, text[i]);
  }
  if (!digits) return 0;
  if (i < size && (text[i] == 'e' || text[i] == 'E')) {
    int minus = i + 1 < size && text[i + 1] == '-', power = 0;
    is_whole = 0;
    i += 1 + (minus || (i + 1 < size && text[i + 1] == '+'));
    if (i >= size || !is_digit(text[i])) return 0;
    for (; i < size && is_digit(text[i]); i++)
      if (power < 10000) power = power * 10 + (text[i] - '0');
    scale += minus ? -power : power;
  }
  while (i < size && is_space(text[i])) i++;
  if (i < size) return 0;
  if (x > 0 && scale) x *= pow(10, scale); /* pow() may overflow */
  *number = negative ? -x : x;
  *whole = negative ? -*whole : *whole;
  return is_whole ? 2 : 1;
}

static struct hashed hashed_bytes(const unsigned char *bytes, int size, int fold) {
  return (struct hashed){hash_bytes(bytes, size, fold), 0, 0};
}

static struct hashed hashed_text(const unsigned char *text, int size) {
  double number;
  int64_t whole;
  int kind = number_of(text, size, &number, &whole);
  if (kind) return kind == 2 ? hashed_integer(whole) : hashed_real(number);
  while (size && text[size - 1] == ' ') size--;
  return hashed_bytes(text, size, 1);
}

static struct hashed hashed_cell(const struct unit_rows *rows, size_t row, int column) {
  if (column == rows->columns) return hashed_integer(rows->rowids[row]);
  const struct cell *cell = &rows->cells[row * (size_t)rows->columns + (size_t)column];
  const unsigned char *bytes = rows->bytes + (cell->size ? cell->as.offset : 0);
  switch (cell->type) {
  case SQLITE_INTEGER: return hashed_integer(cell->as.integer);
  case SQLITE_FLOAT: return hashed_real(cell->as.real);
  case SQLITE_TEXT: return hashed_text(bytes, cell->size);
  default: return hashed_bytes(bytes, cell->size, 0);
  }
}

static struct hashed hashed_value(sqlite3_value *value, int *failed) {
  int type = sqlite3_value_type(value);
  const void *bytes;
  if (type == SQLITE_INTEGER) return hashed_integer(sqlite3_value_int64(value));
  if (type == SQLITE_FLOAT) return hashed_real(sqlite3_value_double(value));
  if (type == SQLITE_TEXT) {
    bytes = sqlite3_value_text(value);
    if (!bytes) *failed = 1;
    return bytes ? hashed_text(bytes, sqlite3_value_bytes(value)) : (struct hashed){0};
  }
  bytes = sqlite3_value_blob(value);
  return hashed_bytes(bytes, bytes ? sqlite3_value_bytes(value) : 0, 0);
}

/* ---- indices --------------------------------------------------------------------------------- */

int unit_rows_index(struct unit_rows *rows, const int *columns, int count) {
  struct row_index made = {.count = count};
  for (int i = 0; i < count; i++) made.columns[i] = columns[i];
  for (int i = 0; i < rows->index_count; i++)
    if (memcmp(rows->indices[i].columns, made.columns, sizeof made.columns) == 0 &&
        rows->indices[i].count == count)
      return i;
  struct row_index *grown =
      realloc(rows->indices, sizeof *grown * (size_t)(rows->index_count + 1));
  if (!grown) return -1;
  rows->indices = grown;
  grown[rows->index_count] = made;
  return rows->index_count++;
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

static uint32_t mixed(uint32_t hash, uint32_t other) {
  return (hash ^ other) * 0x9e3779b1u + (hash >> 7);
}

/*
** Builds an index. Adds the last row first, so that every bucket lists its rows in order. Returns 0
** when out of memory.
*/
static int build(struct unit_rows *rows, struct row_index *index) {
  if (index->is_built) return 1;
  if (!index_room(index, rows->count)) return 0;
  memset(index->heads, 0xff, sizeof *index->heads * index->buckets);
  index->has_odd = 0;
  for (size_t i = rows->count; i-- > 0;) {
    uint32_t hash = 0;
    for (int j = 0; j < index->count; j++) {
      struct hashed cell = hashed_cell(rows, i, index->columns[j]);
      index->has_odd |= cell.is_odd && cell.is_large;
      hash = mixed(hash, cell.hash);
    }
    uint32_t *head = &index->heads[hash & (index->buckets - 1)];
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

uint32_t unit_rows_find(struct unit_rows *rows, int number, sqlite3_value **values,
                        struct row_search *search, int *failed) {
  struct row_index *index = &rows->indices[number];
  int reads_all = 0;
  *search = (struct row_search){0};
  if (!build(rows, index)) *failed = 1;
  for (int i = 0; i < index->count && !*failed; i++) {
    struct hashed value = hashed_value(values[i], failed);
    if (sqlite3_value_type(values[i]) == SQLITE_NULL) return NO_ROW;
    reads_all |= value.is_odd || (value.is_large && index->has_odd);
    search->hash = mixed(search->hash, value.hash);
  }
  if (*failed || !rows->count) return NO_ROW;
  if (reads_all) return 0;
  search->index = index;
  return same_hash(index, index->heads[search->hash & (index->buckets - 1)], search->hash);
}

uint32_t unit_rows_next(const struct unit_rows *rows, const struct row_search *search,
                        uint32_t row) {
  if (search->index) return same_hash(search->index, search->index->next[row], search->hash);
  return row + 1 < rows->count ? row + 1 : NO_ROW;
}
