/* evaluator_tables.c: the tables of an evaluator's connection. Their rows are in memory: those of
** one unit, or all rows of a public table. Virtual tables with the names of the declared tables
** give them to SQLite, and look up rows in indices.
** Tests: tests/query/test_questions.py, tests/query/test_random_comparisons.py,
** tests/query/test_question_steps.py */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_functions.h"
#include "query/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- rows in memory -------------------------------------------------------------------------- */

/* A value. If it is a text (in UTF-8) or a blob, its bytes are in the buffer of struct
** unit_rows. */
struct cell {
  int type; /* SQLITE_INTEGER, ... */
  int size; /* the size of a text or blob in bytes */
  union {
    int64_t integer;
    double real;
    size_t offset;
  } as;
};

/* An index on some columns, which links the rows that have the same hash. Column number
** rows->columns is the rowid. */
#define INDEX_MOST 8
struct row_index {
  int columns[INDEX_MOST], count;
  int is_built;
  int has_odd; /* a row has an odd value: see struct hashed */
  uint32_t *heads, *next, *hashes;
  size_t buckets, heads_room, rows_room;
};

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
  if (room >= UINT32_MAX) return 0;
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

/* Sets a value as the result of xColumn. It is valid until rows are added or cleared. */
static void give_cell(const struct unit_rows *rows, sqlite3_context *context, size_t row,
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

/* ---- hashes of values ------------------------------------------------------------------------ */

/* Two values have the same hash if any comparison of SQLite treats them as equal. A comparison may
** convert a text that is a number as a whole to this number, or a number to a text of 15 digits or
** more. It may also ignore case and trailing spaces.
**
** So a number that is not whole shares its hash with all numbers that differ in the tenth digit or
** later, and near a whole number it has the hash of the whole number. (SQLite writes an infinite
** number as the text Inf or -Inf, so numbers near infinity have the hash of this text.) Some
** numbers are odd: those that lie so close to the limit of such a class that a number on the other
** side may have the same text, and those of at least LARGE that are no integers. A search for an
** odd number reads all rows. So does a search for an integer of at least LARGE, if a row has an odd
** number. */
#define LARGE      1e12
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

/* Reads the number that a text is as a whole. Returns 0 if the text is no number. Sets *whole to 1
** if it has up to 18 digits and nothing else, so that *number is exact. */
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

#define NO_ROW UINT32_MAX

/* Returns the number of the index on these columns, at most INDEX_MOST, or -1 when out of memory.
** The index has no rows before find_first() needs it. */
static int index_on(struct unit_rows *rows, const int *columns, int count) {
  struct row_index made = {.count = count};
  for (int i = 0; i < count; i++) made.columns[i] = columns[i];
  for (int i = 0; i < rows->index_count; i++)
    if (memcmp(rows->indices[i].columns, made.columns, sizeof made.columns) == 0 &&
        rows->indices[i].count == count)
      return i;
  struct row_index *grown = realloc(rows->indices, sizeof *grown * (size_t)(rows->index_count + 1));
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

/* Builds an index. Adds the last row first, so that every bucket lists its rows in order. Returns 0
** when out of memory. */
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

/* A search in an index, or over all rows if an index cannot tell which rows it would miss. */
struct row_search {
  const struct row_index *index; /* null: all rows */
  uint32_t hash;
};

/* Finds the first row whose values in the columns of an index may be equal to `values`. The rows of
** a search, in their order, are all whose values are equal under some affinity and collation, and
** possibly other rows. Returns NO_ROW if there is none. Sets *failed when out of memory. */
static uint32_t find_first(struct unit_rows *rows, int number, sqlite3_value **values,
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

/* Returns the row of a search after `row`, or NO_ROW. */
static uint32_t find_next(const struct unit_rows *rows, const struct row_search *search,
                          uint32_t row) {
  if (search->index) return same_hash(search->index, search->index->next[row], search->hash);
  return row + 1 < rows->count ? row + 1 : NO_ROW;
}

/* ---- virtual tables -------------------------------------------------------------------------- */

struct vtab {
  sqlite3_vtab base;
  struct evaluator_tables *all;
  int number; /* the index in all->list */
};

/* What xFilter reads if it does not search in an index. */
enum { ALL_ROWS = -1, ALL_ROWS_BACKWARD = -2 };

struct cursor {
  sqlite3_vtab_cursor base;
  size_t row; /* the number of rows, or more, at the end */
  int index;  /* the number of the index, ALL_ROWS or ALL_ROWS_BACKWARD */
  struct row_search search;
};

static struct evaluator_table *table_of(const sqlite3_vtab *vtab) {
  const struct vtab *table = (const struct vtab *)vtab;
  return &table->all->list[table->number];
}

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)error;
  struct evaluator_tables *all = aux;
  int number = argc > 3 ? (int)strtol(argv[3], 0, 10) : -1;
  if (number < 0 || number >= all->count) return SQLITE_ERROR;
  char *definition = table_definition(&all->list[number].route.tables[0]);
  int rc = definition ? sqlite3_declare_vtab(db, definition) : SQLITE_NOMEM;
  sqlite3_free(definition);
  struct vtab *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct vtab){{0}, all, number};
  *vtab = &table->base;
  return sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
}

/* This function must differ from xConnect. If both were the same, SQLite would treat the name of
** the module as a table. */
static int xCreate(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                   char **error) {
  return xConnect(db, aux, argc, argv, vtab, error);
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

#ifdef SQLITE_CORE
#pragma weak sqlite3_vtab_in /* a program may link an older SQLite than that of the headers */
#endif

/* Returns whether constraint i is an equality that the table may use to look up rows. SQLite
** evaluates the whole comparison again for every row that the table gives, so the rows may be too
** many (find_first()), and affinities and collations do not matter here.
**
** This does not hold for IN, which SQLite reports as an equality, too: SQLite then compares each
** value of the right side with the column, but by the column's affinity alone, and gives a row
** twice if two values equal it in this way. So the table never uses IN. sqlite3_vtab_in() finds it
** among the first 32 constraints, unless its left side is a row value. */
static int is_equality(const struct evaluator_tables *all, sqlite3_index_info *info, int i) {
  if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ ||
      all->searches_nothing || i > 31)
    return 0;
#if SQLITE_VERSION_NUMBER >= IN_TOLD_SINCE
  return sqlite3_libversion_number() < IN_TOLD_SINCE || !sqlite3_vtab_in(info, i, -1);
#else
  return sqlite3_libversion_number() < IN_TOLD_SINCE;
#endif
}

/* Returns whether rows in the order of the rowid are what ORDER BY asks for. Rowids are unique, so
** further terms do not matter. Without this, SQLite
** would sort the rows and compute the results of all of them, even for LIMIT 1. An error in the
** results of another row would then drop the unit, which does not happen with an ordinary table. */
static int is_rowid_order(const struct evaluator_table *table, const sqlite3_index_info *info) {
  const struct table_facts *facts = &table->route.tables[0];
  if (info->nOrderBy < 1 || facts->without_rowid) return 0;
  int column = info->aOrderBy[0].iColumn;
  return column < 0 || column == facts->rowid_alias;
}

/* What the tables report about their rows does not depend on the rows (Q1 in internal.h). A unit
** has few rows and a public table many, so that a join begins with the rows of the unit. */
static void report_costs(sqlite3_index_info *info, const struct evaluator_table *table,
                         int searches) {
  int is_public = table->declaration->role == POLICY_PUBLIC;
  info->estimatedRows = searches ? 10 : is_public ? 1000000 : 100;
  info->estimatedCost = (double)info->estimatedRows;
}

/* Chooses the columns by whose values the table will look up rows: all that have an equality. The
** function also records which columns the statement reads, from the mask colUsed, because SQLite
** asks no authorizer for the columns of USING. */
static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  struct evaluator_table *table = table_of(vtab);
  int columns = table->route.tables[0].count, chosen[INDEX_MOST], count = 0;
  for (int i = 0; i < columns; i++)
    if (info->colUsed & (sqlite3_uint64)1 << (i < 63 ? i : 63)) table->used[i] |= COLUMN_NAMED;
  for (int i = 0; i < info->nConstraint && count < INDEX_MOST; i++) {
    int column = info->aConstraint[i].iColumn, is_new = 1;
    if (column < 0) column = columns;
    for (int j = 0; j < count; j++) is_new &= chosen[j] != column;
    if (!is_new || !is_equality(((struct vtab *)vtab)->all, info, i)) continue;
    chosen[count++] = column;
    info->aConstraintUsage[i].argvIndex = count;
    if (column < columns) table->used[column] |= COLUMN_SEARCHED;
  }
  int is_ordered = is_rowid_order(table, info), backward = is_ordered && info->aOrderBy[0].desc;
  info->orderByConsumed = is_ordered && (!backward || !count);
  report_costs(info, table, count > 0);
  info->idxNum = backward ? ALL_ROWS_BACKWARD : ALL_ROWS;
  info->idxStr = sqlite3_mprintf("%c%d", EVALUATOR_SEARCH, ((struct vtab *)vtab)->number);
  info->needToFreeIdxStr = 1;
  if (!info->idxStr) return SQLITE_NOMEM;
  if (!count) return SQLITE_OK;
  info->idxNum = index_on(&table->rows, chosen, count);
  return info->idxNum < 0 ? SQLITE_NOMEM : SQLITE_OK;
}

/* Uses calloc(), because threads that call sqlite3_malloc() wait for each other, and every unit
** opens a cursor. */
static int xOpen(sqlite3_vtab *vtab, sqlite3_vtab_cursor **base) {
  (void)vtab;
  struct cursor *cursor = calloc(1, sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  *base = &cursor->base;
  return SQLITE_OK;
}

static int xClose(sqlite3_vtab_cursor *base) {
  free(base);
  return SQLITE_OK;
}

static void settle(struct cursor *cursor, const struct unit_rows *rows, uint32_t row) {
  cursor->row = row == NO_ROW ? rows->count : row;
}

static int xFilter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)text;
  struct cursor *cursor = (struct cursor *)base;
  struct unit_rows *rows = &table_of(base->pVtab)->rows;
  int failed = 0;
  cursor->index = number;
  cursor->row = number == ALL_ROWS_BACKWARD ? rows->count - 1 : 0; /* no rows: SIZE_MAX, the end */
  if (!argc) return SQLITE_OK;
  settle(cursor, rows, find_first(rows, number, argv, &cursor->search, &failed));
  return failed ? SQLITE_NOMEM : SQLITE_OK;
}

static int xNext(sqlite3_vtab_cursor *base) {
  struct cursor *cursor = (struct cursor *)base;
  const struct unit_rows *rows = &table_of(base->pVtab)->rows;
  if (cursor->index == ALL_ROWS) {
    cursor->row++;
  } else if (cursor->index == ALL_ROWS_BACKWARD) {
    cursor->row--;
  } else {
    settle(cursor, rows, find_next(rows, &cursor->search, (uint32_t)cursor->row));
  }
  return SQLITE_OK;
}

static int xEof(sqlite3_vtab_cursor *base) {
  return ((struct cursor *)base)->row >= table_of(base->pVtab)->rows.count;
}

/* Fails the question. */
static int broken(const sqlite3_vtab *vtab) {
  ((const struct vtab *)vtab)->all->is_broken = 1;
  return SQLITE_INTERNAL;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct evaluator_table *table = table_of(base->pVtab);
  if (column >= table->rows.columns || table->places[column] < 0 || xEof(base))
    return broken(base->pVtab);
  give_cell(&table->rows, context, ((struct cursor *)base)->row, column);
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  if (xEof(base)) return broken(base->pVtab);
  *rowid = table_of(base->pVtab)->rows.rowids[((struct cursor *)base)->row];
  return SQLITE_OK;
}

static const sqlite3_module module = {.xCreate = xCreate,
                                      .xConnect = xConnect,
                                      .xBestIndex = xBestIndex,
                                      .xDisconnect = xDisconnect,
                                      .xDestroy = xDisconnect,
                                      .xOpen = xOpen,
                                      .xClose = xClose,
                                      .xFilter = xFilter,
                                      .xNext = xNext,
                                      .xEof = xEof,
                                      .xColumn = xColumn,
                                      .xRowid = xRowid};

int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all) {
  return sqlite3_create_module_v2(db, EVALUATOR_MODULE, &module, all, 0);
}
