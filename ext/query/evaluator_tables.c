/* evaluator_tables.c: see evaluator_tables.h. Tests: tests/query/test_questions.py */
#include "query/evaluator_tables.h"

#include <stdlib.h>

#include "query/in_operators.h"

SQLITE_EXTENSION_INIT3

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

/*
** This function must differ from xConnect. If both were the same, SQLite would treat the name of
** the module as a table.
*/
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

void evaluator_tables_note_text(struct evaluator_tables *all, const char *sql) {
  all->searches_nothing |= has_hidden_in(sql);
}

/*
** Returns whether constraint i is an equality that the table may use to look up rows. SQLite
** evaluates the whole comparison again for every row that the table gives, so the rows may be too
** many (unit_rows.h), and affinities and collations do not matter here.
**
** This does not hold for IN, which SQLite reports as an equality, too: SQLite then compares each
** value of the right side with the column, but by the column's affinity alone, and gives a row
** twice if two values equal it in this way. So the table never uses IN. sqlite3_vtab_in() finds it
** among the first 32 constraints, unless its left side is a row value.
*/
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

/*
** Returns whether rows in the order of the rowid are what ORDER BY asks for. Rowids are unique, so
** further terms do not matter. Without this, SQLite
** would sort the rows and compute the results of all of them, even for LIMIT 1. An error in the
** results of another row would then drop the unit, which does not happen with an ordinary table.
*/
static int is_rowid_order(const struct evaluator_table *table, const sqlite3_index_info *info) {
  const struct table_facts *facts = &table->route.tables[0];
  if (info->nOrderBy < 1 || facts->without_rowid) return 0;
  int column = info->aOrderBy[0].iColumn;
  return column < 0 || column == facts->rowid_alias;
}

/*
** What the tables report about their rows does not depend on the rows (Q1 in evaluator.h). A unit
** has few rows and a public table many, so that a join begins with the rows of the unit.
*/
static void report_costs(sqlite3_index_info *info, const struct evaluator_table *table,
                         int searches) {
  int is_public = table->declaration->role == POLICY_PUBLIC;
  info->estimatedRows = searches ? 10 : is_public ? 1000000 : 100;
  info->estimatedCost = (double)info->estimatedRows;
}

/*
** Chooses the columns by whose values the table will look up rows: all that have an equality. The
** function also records which columns the statement reads, from the mask colUsed, because SQLite
** asks no authorizer for the columns of USING.
*/
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
  info->idxNum = unit_rows_index(&table->rows, chosen, count);
  return info->idxNum < 0 ? SQLITE_NOMEM : SQLITE_OK;
}

/*
** Uses calloc(), because threads that call sqlite3_malloc() wait for each other, and every unit
** opens a cursor.
*/
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
  settle(cursor, rows, unit_rows_find(rows, number, argv, &cursor->search, &failed));
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
    settle(cursor, rows, unit_rows_next(rows, &cursor->search, (uint32_t)cursor->row));
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
  unit_rows_result(&table->rows, context, ((struct cursor *)base)->row, column);
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
