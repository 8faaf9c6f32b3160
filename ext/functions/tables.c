/*
** tables.c: the ledger's tables on the host connection, as read-only eponymous virtual tables.
**
**   T1 xFilter copies all rows and finishes its statement on the ledger before it returns.
**       Otherwise SELECT dp_diffuse(name, 'public') FROM dp_release would read the rows that it
**       writes.
**   T2 The tables are not DIRECTONLY, so that stored views may read the ledger.
**   T3 SQLite passes an equality on any column to xFilter, unless the equality uses another
**       collation than BINARY.
*/
#include <string.h>

#include "functions/functions.h"
#include "functions/host.h"
#include "functions/tier_guard.h"
#include "ledger/ledger.h"
#include "release/pending.h"

SQLITE_EXTENSION_INIT3

#define MAX_COLUMNS 20

struct ledger_vtab {
  sqlite3_vtab base;
  struct host *host;
  const struct ledger_table *source;
};

struct cursor {
  sqlite3_vtab_cursor base;
  sqlite3_value **cells; /* copies of rows * columns values, row by row */
  int rows, columns, row;
  int capacity; /* the number of values for which `cells` has room */
};

/* The user data of a module: the table of the ledger, and a counted reference to the host. */
struct module {
  struct host *host;
  const struct ledger_table *source;
};

static int vtab_fail(struct ledger_vtab *table, const char *message) {
  sqlite3_free(table->base.zErrMsg);
  table->base.zErrMsg = sqlite3_mprintf("%s: %s", table->source->columns->table, message);
  return SQLITE_ERROR;
}

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc;
  (void)argv;
  (void)error;
  const struct module *module = aux;
  char *columns = ledger_table_declaration(module->source);
  char *declaration = columns ? sqlite3_mprintf("CREATE TABLE x(%s)", columns) : 0;
  sqlite3_free(columns);
  int rc = declaration ? sqlite3_declare_vtab(db, declaration) : SQLITE_NOMEM;
  sqlite3_free(declaration);
  struct ledger_vtab *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct ledger_vtab){{0}, module->host, module->source};
  *vtab = &table->base;
  return SQLITE_OK;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/*
** Sets idxStr to the columns whose values xFilter gets (T3). One letter stands for one column, and
** 'a' is column 0.
*/
static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  char columns[MAX_COLUMNS + 1];
  int count = 0;
  for (int i = 0; i < info->nConstraint && count < MAX_COLUMNS; i++) {
    if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ ||
        info->aConstraint[i].iColumn < 0 ||
        sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
      continue;
    columns[count++] = (char)('a' + info->aConstraint[i].iColumn);
    info->aConstraintUsage[i].argvIndex = count; /* SQLite checks the equality again */
  }
  columns[count] = 0;
  info->idxStr = sqlite3_mprintf("%s", columns);
  if (!info->idxStr) return SQLITE_NOMEM;
  info->needToFreeIdxStr = 1;
  info->estimatedCost = count ? 10 : 1000;
  info->estimatedRows = count ? 10 : 1000;
  return SQLITE_OK;
}

static int xOpen(sqlite3_vtab *vtab, sqlite3_vtab_cursor **base) {
  (void)vtab;
  struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  memset(cursor, 0, sizeof *cursor);
  *base = &cursor->base;
  return SQLITE_OK;
}

static void forget_rows(struct cursor *cursor) {
  for (int i = 0; i < cursor->rows * cursor->columns; i++) sqlite3_value_free(cursor->cells[i]);
  sqlite3_free(cursor->cells);
  cursor->cells = 0;
  cursor->rows = cursor->columns = cursor->row = cursor->capacity = 0;
}

static int xClose(sqlite3_vtab_cursor *base) {
  forget_rows((struct cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

/* Copies one row. When out of memory, returns 0 and does not count the row. */
static int take_row(void *context, sqlite3_stmt *row, int columns) {
  struct cursor *cursor = context;
  int used = cursor->rows * columns;
  cursor->columns = columns;
  if (used + columns > cursor->capacity) {
    int capacity = cursor->capacity * 2 + 16 * columns;
    sqlite3_value **grown =
        sqlite3_realloc64(cursor->cells, sizeof *grown * (sqlite3_uint64)capacity);
    if (!grown) return 0;
    cursor->cells = grown;
    cursor->capacity = capacity;
  }
  for (int i = 0; i < columns; i++) {
    cursor->cells[used + i] = sqlite3_value_dup(sqlite3_column_value(row, i));
    if (!cursor->cells[used + i]) {
      while (i-- > 0) sqlite3_value_free(cursor->cells[used + i]);
      return 0;
    }
  }
  cursor->rows++;
  return 1;
}

static int xFilter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)number;
  struct cursor *cursor = (struct cursor *)base;
  struct ledger_vtab *table = (struct ledger_vtab *)base->pVtab;
  struct ledger *ledger = table->host->session.ledger;
  int wanted[MAX_COLUMNS];
  for (int i = 0; i < argc; i++) wanted[i] = text[i] - 'a';
  struct tier_guard *guard = table->host->guard;
  struct error error = {0};
  forget_rows(cursor);
  if (!tier_guard_enter(guard, 0, &error)) {
    vtab_fail(table, error_text(&error));
    error_clear(&error);
    return SQLITE_ERROR;
  }
  int read = ledger_ready(ledger) && pending_begin_reading(&table->host->session) &&
             (!table->source->by_period || ledger_read_periods(ledger)) &&
             ledger_table_read(ledger, table->source, wanted, argv, argc, take_row, cursor);
  ledger_rollback(ledger);
  tier_guard_leave(guard);
  if (read) return SQLITE_OK;
  return vtab_fail(table, error_text(ledger_error(ledger)));
}

static int xNext(sqlite3_vtab_cursor *base) {
  ((struct cursor *)base)->row++;
  return SQLITE_OK;
}

static int xEof(sqlite3_vtab_cursor *base) {
  const struct cursor *cursor = (struct cursor *)base;
  return cursor->row >= cursor->rows;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (struct cursor *)base;
  sqlite3_result_value(context, cursor->cells[cursor->row * cursor->columns + column]);
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((struct cursor *)base)->row;
  return SQLITE_OK;
}

static const sqlite3_module methods = {
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
    .xRowid = xRowid,
};

static void module_free(void *pointer) {
  struct module *module = pointer;
  host_release(module->host);
  sqlite3_free(module);
}

int tables_register(sqlite3 *db, struct host *host) {
  for (int i = 0; i < ledger_table_count; i++) {
    struct module *module = sqlite3_malloc(sizeof *module);
    if (!module) return SQLITE_NOMEM;
    *module = (struct module){host_retain(host), &ledger_tables[i]};
    /* If the registration fails, SQLite calls module_free(). */
    int rc = sqlite3_create_module_v2(db, ledger_tables[i].columns->table, &methods, module,
                                      module_free);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}
