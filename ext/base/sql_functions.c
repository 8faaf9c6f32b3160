/* sql_functions.c: see sql_functions.h.
** Tests: tests/base/test_row_tables.py, tests/faults/test_calls.py,
** tests/sums/test_vectors_input.py, tests/functions/test_errors.py */
#include "base/sql_functions.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

#ifdef SQLITE_CORE
#pragma weak sqlite3_vtab_in /* a program may link an older SQLite than that of the headers */
#endif

/* A bit of idxNum beside those of the arguments: a search that would break V5. */
#define READS_MISSING (1 << (ROW_MOST_ARGUMENTS - 1))

/* A cell, and after it its bytes: those of an integer, a double, a text or a blob. */
struct cell {
  int type; /* SQLITE_INTEGER, ... */
  int size;
};

struct row_list {
  unsigned char *bytes; /* the cells */
  size_t *places;       /* where they begin; a cell may have the place of an equal one above it */
  size_t count, room, used, bytes_room;
  int columns; /* 0: one row of any length */
  struct error *error;
};

/* The user data of a module. */
struct module {
  struct row_table table;
  char *declaration;
  void *context;
  void (*release)(void *);
};

struct vtab {
  sqlite3_vtab base;
  const struct module *module;
  sqlite3 *db;
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct row_list rows;
  size_t at;                                    /* the first cell of the current row */
  sqlite3_value *arguments[ROW_MOST_ARGUMENTS]; /* null: not given */
  sqlite3_int64 *rowids; /* of all rows (V4); null: SQLite has not asked for one */
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Many columns have one text in all rows, which is therefore stored once. */
static int append(struct row_list *rows, int type, const void *bytes, int size) {
  struct cell cell = {type, size};
  size_t columns = (size_t)rows->columns, end = rows->used + sizeof cell + (size_t)size;
  if (rows->count == rows->room) {
    size_t room = rows->room * 2 + 64,
           *places = sqlite3_realloc64(rows->places, sizeof *places * room);
    if (!places) return error_set_memory(rows->error);
    rows->places = places;
    rows->room = room;
  }
  if (columns && rows->count >= columns) {
    size_t place = rows->places[rows->count - columns];
    const unsigned char *above = rows->bytes + place;
    if (memcmp(above, &cell, sizeof cell) == 0 &&
        (!size || memcmp(above + sizeof cell, bytes, (size_t)size) == 0)) {
      rows->places[rows->count++] = place;
      return 1;
    }
  }
  if (end > rows->bytes_room) {
    size_t room = end + end / 4; /* old and new bytes are in memory at the same time */
    unsigned char *grown = sqlite3_realloc64(rows->bytes, room);
    if (!grown) return error_set_memory(rows->error);
    rows->bytes = grown;
    rows->bytes_room = room;
  }
  memcpy(rows->bytes + rows->used, &cell, sizeof cell);
  if (size) memcpy(rows->bytes + rows->used + sizeof cell, bytes, (size_t)size);
  rows->places[rows->count++] = rows->used;
  rows->used = end;
  return 1;
}

int row_null(struct row_list *rows) {
  return append(rows, SQLITE_NULL, 0, 0);
}

int row_integer(struct row_list *rows, sqlite3_int64 integer) {
  return append(rows, SQLITE_INTEGER, &integer, sizeof integer);
}

int row_real(struct row_list *rows, double real) {
  return isnan(real) ? row_null(rows) : append(rows, SQLITE_FLOAT, &real, sizeof real);
}

int row_text(struct row_list *rows, const char *text) {
  return text ? append(rows, SQLITE_TEXT, text, (int)strlen(text)) : row_null(rows);
}

static int append_value(struct row_list *rows, sqlite3_value *value) {
  int type = value ? sqlite3_value_type(value) : SQLITE_NULL;
  if (type == SQLITE_NULL) return row_null(rows);
  if (type == SQLITE_INTEGER) return row_integer(rows, sqlite3_value_int64(value));
  if (type == SQLITE_FLOAT) return row_real(rows, sqlite3_value_double(value));
  const void *bytes =
      type == SQLITE_TEXT ? (const void *)sqlite3_value_text(value) : sqlite3_value_blob(value);
  int size = sqlite3_value_bytes(value);
  if (!bytes && (size || type == SQLITE_TEXT)) return error_set_memory(rows->error);
  return append(rows, type, bytes, size);
}

int row_value(struct row_list *rows, sqlite3_value *value) {
  int appended = value ? append_value(rows, value) : error_set_memory(rows->error);
  sqlite3_value_free(value);
  return appended;
}

static void row_list_clear(struct row_list *rows) {
  sqlite3_free(rows->bytes);
  sqlite3_free(rows->places);
}

static void forget(struct cursor *cursor) {
  row_list_clear(&cursor->rows);
  sqlite3_free(cursor->rowids);
  for (int i = 0; i < ROW_MOST_ARGUMENTS; i++) sqlite3_value_free(cursor->arguments[i]);
  *cursor = (struct cursor){.base = cursor->base};
}

/* ---- the module ------------------------------------------------------------------------------ */

static const struct row_table *table_of(sqlite3_vtab *vtab) {
  return &((struct vtab *)vtab)->module->table;
}

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc, (void)argv, (void)error;
  const struct module *module = aux;
  int rc = sqlite3_declare_vtab(db, module->declaration);
  if (rc == SQLITE_OK && module->table.option) rc = sqlite3_vtab_config(db, module->table.option);
  struct vtab *made = rc == SQLITE_OK ? sqlite3_malloc(sizeof *made) : 0;
  if (!made) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *made = (struct vtab){{0}, module, db};
  *vtab = &made->base;
  return SQLITE_OK;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* Sets idxNum and argvIndex for the arguments with a place, the index of a constraint. */
static void hand_over(sqlite3_index_info *info, const int *places, int most, int omit) {
  int used = 0;
  for (int i = 0; i < most; i++) {
    if (places[i] < 0) continue;
    info->idxNum |= 1 << i;
    info->aConstraintUsage[places[i]].argvIndex = ++used;
    info->aConstraintUsage[places[i]].omit = (unsigned char)omit;
  }
}

int row_table_plan(sqlite3_index_info *info, int first, int most) {
  int places[ROW_MOST_ARGUMENTS];
  for (int i = 0; i < ROW_MOST_ARGUMENTS; i++) places[i] = -1;
  for (int i = 0; i < info->nConstraint; i++) {
    int argument = info->aConstraint[i].iColumn - first;
    if (argument < 0 || argument >= most || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
      continue;
    if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
    if (places[argument] < 0) places[argument] = i; /* SQLite checks a second one on the argument */
  }
  hand_over(info, places, most, 1);
  return SQLITE_OK;
}

/* Returns whether a constraint is the IN of a list or of a SELECT, or may be one. SQLite reports it
** as an equality, but compares the values with the column by the column's affinity alone, and loses
** rows of which a full comparison would be true. SQLite tells so of the first 32 constraints. */
static int is_in(sqlite3_index_info *info, int i) {
#if SQLITE_VERSION_NUMBER >= IN_TOLD_SINCE
  if (sqlite3_libversion_number() >= IN_TOLD_SINCE) return i > 31 || sqlite3_vtab_in(info, i, -1);
#endif
  (void)info;
  return i > 31;
}

/* Hands over the comparisons of columns (V3). */
static void plan_search(sqlite3_index_info *info, int most) {
  int places[ROW_MOST_ARGUMENTS];
  for (int i = 0; i < ROW_MOST_ARGUMENTS; i++) places[i] = -1;
  for (int i = 0; i < info->nConstraint; i++) {
    int column = info->aConstraint[i].iColumn;
    if (column >= 0 && column < most && info->aConstraint[i].usable &&
        info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && !is_in(info, i) &&
        sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") == 0)
      places[column] = i;
  }
  hand_over(info, places, most, 0);
}

/* Returns whether an argument that the table needs is not among those that are given. */
static int lacks(const struct row_table *table, int given) {
  int needed = (1 << table->least) - 1;
  return (given & needed) != needed;
}

static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  const struct row_table *table = table_of(vtab);
  int rc = SQLITE_OK;
  if (table->is_searched) {
    plan_search(info, table->most);
  } else {
    rc = row_table_plan(info, table->first, table->most);
    for (int i = table->least; i < table->most; i++)
      if (info->colUsed >> (table->first + i) & 1 && !(info->idxNum >> i & 1))
        info->idxNum |= READS_MISSING;
  }
  int part = table->is_searched && info->idxNum ? 100 : 1; /* the search finds one row of 100 */
  int fails = lacks(table, info->idxNum) || (!table->is_searched && info->idxNum & READS_MISSING);
  info->estimatedCost = fails ? 1e99 : table->cost / part;
  info->estimatedRows = table->estimate / part;
  if (table->estimate == 1) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  return rc;
}

static int xOpen(sqlite3_vtab *vtab, sqlite3_vtab_cursor **base) {
  (void)vtab;
  struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  *cursor = (struct cursor){.at = 0};
  *base = &cursor->base;
  return SQLITE_OK;
}

static int xClose(sqlite3_vtab_cursor *base) {
  forget((struct cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static int xFilter(sqlite3_vtab_cursor *base, int given, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)text;
  struct cursor *cursor = (struct cursor *)base;
  const struct module *module = ((struct vtab *)base->pVtab)->module;
  struct error error = {.caller = ((struct vtab *)base->pVtab)->db};
  forget(cursor);
  cursor->rows = (struct row_list){.columns = module->table.count, .error = &error};
  for (int i = 0, used = 0; used < argc; i++) {
    if (!(given >> i & 1)) continue;
    cursor->arguments[i] = sqlite3_value_dup(argv[used++]);
    if (!cursor->arguments[i]) return SQLITE_NOMEM;
  }
  if (!module->table.is_searched && given & READS_MISSING) {
    error_set(&error, "an argument is read or compared that this call does not have (join calls "
                      "with different arguments by UNION ALL)");
  } else if (lacks(&module->table, given)) {
    error_set(&error, "an argument is missing (this table takes %d%s)", module->table.least,
              module->table.most > module->table.least ? " or more" : "");
  } else if (module->table.fill(&cursor->rows, module->context, cursor->arguments, &error) &&
             !error_is_set(&error)) {
    return SQLITE_OK;
  }
  sqlite3_free(base->pVtab->zErrMsg);
  base->pVtab->zErrMsg = sqlite3_mprintf("%s: %s", module->table.name, error_text(&error));
  error_clear(&error);
  return SQLITE_ERROR;
}

static int xNext(sqlite3_vtab_cursor *base) {
  struct cursor *cursor = (struct cursor *)base;
  cursor->at += (size_t)cursor->rows.columns;
  return SQLITE_OK;
}

static int xEof(sqlite3_vtab_cursor *base) {
  const struct cursor *cursor = (struct cursor *)base;
  return cursor->at >= cursor->rows.count;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (struct cursor *)base;
  const struct row_table *table = table_of(base->pVtab);
  int argument = column - table->first, hidden = table->is_searched ? 0 : table->most;
  if (argument >= 0 && argument < hidden) {
    if (cursor->arguments[argument]) sqlite3_result_value(context, cursor->arguments[argument]);
    return SQLITE_OK;
  }
  const struct row_list *rows = &cursor->rows;
  if (argument >= hidden) column -= hidden;
  const unsigned char *at = rows->bytes + rows->places[cursor->at + (size_t)column];
  struct cell cell;
  sqlite3_int64 integer;
  double real;
  memcpy(&cell, at, sizeof cell);
  at += sizeof cell;
  switch (cell.type) {
  case SQLITE_INTEGER:
    memcpy(&integer, at, sizeof integer);
    sqlite3_result_int64(context, integer);
    break;
  case SQLITE_FLOAT:
    memcpy(&real, at, sizeof real);
    sqlite3_result_double(context, real);
    break;
  case SQLITE_TEXT:
    sqlite3_result_text(context, (const char *)at, cell.size, SQLITE_TRANSIENT);
    break;
  case SQLITE_BLOB: sqlite3_result_blob(context, at, cell.size, SQLITE_TRANSIENT); break;
  default: break;
  }
  return SQLITE_OK;
}

/* ---- rowids (V4) ----------------------------------------------------------------------------- */

struct place {
  sqlite3_int64 hash;
  size_t row;
};

/* Hashes a row and the hidden arguments. */
static sqlite3_int64 hash_row(const struct row_list *rows, size_t row,
                              const struct row_list *arguments) {
  const size_t *places = rows->places + row * (size_t)rows->columns;
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_state state;
  sqlite3_int64 hash;
  crypto_hash_sha256_init(&state);
  for (int i = 0; i < rows->columns; i++) {
    struct cell cell;
    memcpy(&cell, rows->bytes + places[i], sizeof cell);
    crypto_hash_sha256_update(&state, rows->bytes + places[i], sizeof cell + (size_t)cell.size);
  }
  if (arguments->count) crypto_hash_sha256_update(&state, arguments->bytes, arguments->used);
  crypto_hash_sha256_final(&state, digest);
  memcpy(&hash, digest, sizeof hash);
  return hash & INT64_MAX >> 1; /* some room for rows that are equal */
}

static int by_hash(const void *a, const void *b) {
  sqlite3_int64 x = ((const struct place *)a)->hash, y = ((const struct place *)b)->hash;
  return x < y ? -1 : x > y;
}

/* Returns an SQLite result code. */
static int number_rows(struct cursor *cursor) {
  const struct row_table *table = table_of(cursor->base.pVtab);
  size_t count = cursor->rows.count / (size_t)cursor->rows.columns;
  struct error error = {0};
  struct row_list arguments = {.error = &error};
  struct place *places = sqlite3_malloc64(sizeof *places * count);
  cursor->rowids = sqlite3_malloc64(sizeof *cursor->rowids * count);
  int going = places && cursor->rowids;
  for (int i = 0; i < table->most && !table->is_searched && going; i++)
    going = append_value(&arguments, cursor->arguments[i]);
  for (size_t i = 0; i < count && going; i++)
    places[i] = (struct place){hash_row(&cursor->rows, i, &arguments), i};
  if (going) qsort(places, count, sizeof *places, by_hash);
  for (size_t i = 0, equal = 0; i < count && going; i++) {
    equal = i && places[i].hash == places[i - 1].hash ? equal + 1 : 0;
    cursor->rowids[places[i].row] = places[i].hash + (sqlite3_int64)equal;
  }
  sqlite3_free(places);
  row_list_clear(&arguments);
  error_clear(&error);
  if (going) return SQLITE_OK;
  sqlite3_free(cursor->rowids);
  cursor->rowids = 0;
  return SQLITE_NOMEM;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  struct cursor *cursor = (struct cursor *)base;
  int rc = cursor->rowids ? SQLITE_OK : number_rows(cursor);
  if (rc == SQLITE_OK) *rowid = cursor->rowids[cursor->at / (size_t)cursor->rows.columns];
  return rc;
}

/* A module without xCreate has eponymous tables only. */
static const sqlite3_module methods = {.xConnect = xConnect,
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

static void module_free(void *pointer) {
  struct module *module = pointer;
  if (module->release) module->release(module->context);
  sqlite3_free(module->declaration);
  sqlite3_free(module);
}

int module_register(sqlite3 *db, const char *name, const sqlite3_module *called, void *context,
                    void (*release)(void *context)) {
  if (sqlite3_errcode(db) == SQLITE_NOMEM) {
    release(context);
    return SQLITE_NOMEM;
  }
  return sqlite3_create_module_v2(db, name, called, context, release);
}

int row_table_register(sqlite3 *db, const struct row_table *table, void *context,
                       void (*release)(void *)) {
  struct module *module = sqlite3_malloc(sizeof *module);
  if (!module) {
    if (release) release(context);
    return SQLITE_NOMEM;
  }
  *module = (struct module){*table, sqlite3_mprintf("CREATE TABLE x(%s)", table->columns), context,
                            release};
  if (!module->declaration) {
    module_free(module);
    return SQLITE_NOMEM;
  }
  return module_register(db, table->name, &methods, module, module_free);
}

/* ---- arguments ------------------------------------------------------------------------------- */

int domain_holds(const struct domain *domain, double x) {
  return (domain->low_open ? x > domain->low : x >= domain->low) &&
         (domain->high_open ? x < domain->high : x <= domain->high);
}

int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error) {
  double x;
  int is_number = value_number(value, &x);
  if (is_number < 0) return error_set_memory(error);
  const char *type = is_number ? "" : not_a(value, SQLITE_FLOAT);
  if (is_number && domain_holds(domain, x)) {
    *number = x;
    return 1;
  }
  if (domain->high < INFINITY)
    return error_set(error, "%s must be a number in %c%g, %g%c%s", domain->parameter,
                     domain->low_open ? '(' : '[', domain->low, domain->high,
                     domain->high_open ? ')' : ']', type);
  const char *finite = domain->high_open ? " finite" : "";
  if (domain->low == -INFINITY)
    return error_set(error, "%s must be a%s number%s", domain->parameter, finite, type);
  return error_set(error, "%s must be a%s number %s %g%s", domain->parameter, finite,
                   domain->low_open ? "above" : "of at least", domain->low, type);
}

const char *text_check(sqlite3_value *value, const char *parameter, struct error *error) {
  const char *text = plain_text(value);
  if (text && *text) return text;
  error_set(error, "%s must be a text that is not empty%s", parameter, not_a(value, SQLITE_TEXT));
  return 0;
}

/* ---- scalars --------------------------------------------------------------------------------- */

int pure_register(struct pure *pure, const struct scalar *scalar) {
  int rc = SQLITE_OK;
  assert(pure->count < MOST_PURE);
  pure->names[pure->count++] = scalar->name;
  for (int arity = scalar->min_arguments; arity <= scalar->max_arguments && rc == SQLITE_OK;
       arity++)
    rc = sqlite3_create_function_v2(pure->db, scalar->name, arity, PURE, (void *)scalar,
                                    scalar->call, 0, 0, 0);
  return rc;
}

const struct scalar *function_of(sqlite3_context *context) {
  return sqlite3_user_data(context);
}

static const char *name_of(sqlite3_context *context) {
  return *(const char *const *)sqlite3_user_data(context);
}

void fail_call(sqlite3_context *context, const char *name, struct error *error) {
  char *full = error_is_memory(error) ? 0 : sqlite3_mprintf("%s: %s", name, error_text(error));
  if (full) {
    sqlite3_result_error(context, full, -1);
  } else {
    sqlite3_result_error_nomem(context);
  }
  sqlite3_free(full);
  error_clear(error);
}

int function_error(sqlite3_context *context, const char *format, ...) {
  struct error error = {0};
  va_list arguments;
  va_start(arguments, format);
  error_set_list(&error, format, arguments);
  va_end(arguments);
  fail_call(context, name_of(context), &error);
  return 0;
}

int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number) {
  struct error error = {0};
  if (domain_check(value, domain, number, &error)) return 1;
  fail_call(context, name_of(context), &error);
  return 0;
}
