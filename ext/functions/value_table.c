/* value_table.c: see value_table.h. Tests: tests/sql/test_cross_tables.py */
#include "functions/value_table.h"

#include <string.h>

#include "functions/host.h"
#include "functions/tier_guard.h"

SQLITE_EXTENSION_INIT3

/* The columns, followed by the texts and the arguments. */
enum { KEY, VALUE, STDDEV, LOW, HIGH, DISPLAY, TEXTS };

/* The user data of a module. */
struct module {
  struct host *host; /* a counted reference */
  const struct value_table *table;
};

struct vtab {
  sqlite3_vtab base;
  const struct module *module;
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct value_rows rows;
  int row;
  sqlite3_value *arguments[VALUE_MOST_ARGUMENTS]; /* null: not given */
};

/* ---- rows ------------------------------------------------------------------------------------ */

int value_rows_add(struct value_rows *rows, const struct shown_value *row) {
  if (rows->count == rows->room) {
    int room = rows->room * 2 + 16;
    struct shown_value *grown = sqlite3_realloc64(rows->list, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) return 0;
    rows->list = grown;
    rows->room = room;
  }
  struct shown_value *copy = &rows->list[rows->count++];
  *copy = *row;
  copy->key = row->key ? sqlite3_mprintf("%s", row->key) : 0;
  copy->display = row->display ? sqlite3_mprintf("%s", row->display) : 0;
  return (copy->key || !row->key) && (copy->display || !row->display);
}

static void forget(struct cursor *cursor) {
  struct value_rows *rows = &cursor->rows;
  for (int i = 0; i < rows->count; i++) {
    sqlite3_free(rows->list[i].key);
    sqlite3_free(rows->list[i].display);
  }
  sqlite3_free(rows->list);
  for (int i = 0; i < VALUE_TEXTS; i++) sqlite3_free(rows->texts[i]);
  for (int i = 0; i < VALUE_MOST_ARGUMENTS; i++) sqlite3_value_free(cursor->arguments[i]);
  sqlite3_vtab_cursor base = cursor->base;
  *cursor = (struct cursor){.base = base};
}

/* ---- the module ------------------------------------------------------------------------------ */

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc, (void)argv, (void)error;
  const struct module *module = aux;
  char *columns =
      sqlite3_mprintf("CREATE TABLE x(key, value REAL, stddev REAL, low REAL, high REAL,"
                      " display TEXT%s%s)",
                      module->table->texts, module->table->arguments);
  int rc = columns ? sqlite3_declare_vtab(db, columns) : SQLITE_NOMEM;
  sqlite3_free(columns);
  if (rc == SQLITE_OK && module->table->is_private)
    rc = sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
  struct vtab *made = rc == SQLITE_OK ? sqlite3_malloc(sizeof *made) : 0;
  if (!made) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *made = (struct vtab){{0}, module};
  *vtab = &made->base;
  return SQLITE_OK;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/*
** Refuses a query plan that does not set the first arguments (V2). idxNum is the set of the
** arguments that are given, and xFilter gets their values in the order of the arguments.
*/
static int xBestIndex(sqlite3_vtab *base, sqlite3_index_info *info) {
  const struct value_table *table = ((struct vtab *)base)->module->table;
  int first = TEXTS + table->text_count, places[VALUE_MOST_ARGUMENTS], used = 0;
  for (int i = 0; i < VALUE_MOST_ARGUMENTS; i++) places[i] = -1;
  for (int i = 0; i < info->nConstraint; i++) {
    int argument = info->aConstraint[i].iColumn - first;
    if (argument < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
    if (places[argument] < 0) places[argument] = i; /* SQLite checks a second one on the argument */
  }
  for (int i = 0; i < table->most; i++) {
    if (places[i] < 0) {
      if (i < table->least) return SQLITE_CONSTRAINT;
      continue;
    }
    info->idxNum |= 1 << i;
    info->aConstraintUsage[places[i]].argvIndex = ++used;
    info->aConstraintUsage[places[i]].omit = 1;
  }
  info->estimatedCost = 1e9;
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

static int xClose(sqlite3_vtab_cursor *base) {
  forget((struct cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static int fail(struct vtab *vtab, const char *message) {
  sqlite3_free(vtab->base.zErrMsg);
  vtab->base.zErrMsg = sqlite3_mprintf("%s: %s", vtab->module->table->name, message);
  return SQLITE_ERROR;
}

static int xFilter(sqlite3_vtab_cursor *base, int given, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)text;
  struct cursor *cursor = (struct cursor *)base;
  struct vtab *vtab = (struct vtab *)base->pVtab;
  const struct value_table *table = vtab->module->table;
  struct host *host = vtab->module->host;
  struct error *error = &host->session.error;
  forget(cursor);
  for (int i = 0, used = 0; i < VALUE_MOST_ARGUMENTS && used < argc; i++) {
    if (!(given >> i & 1)) continue;
    cursor->arguments[i] = sqlite3_value_dup(argv[used++]);
    if (!cursor->arguments[i]) return SQLITE_NOMEM;
  }
  if (host->collector.collecting) return fail(vtab, "a release cannot read from another release");
  error_clear(error);
  int filled = tier_guard_enter(host->guard, table->name, error);
  if (filled) {
    filled = table->fill(&cursor->rows, host, cursor->arguments);
    tier_guard_leave(host->guard);
  }
  return filled ? SQLITE_OK : fail(vtab, error_text(error));
}

static int xNext(sqlite3_vtab_cursor *base) {
  ((struct cursor *)base)->row++;
  return SQLITE_OK;
}

static int xEof(sqlite3_vtab_cursor *base) {
  const struct cursor *cursor = (struct cursor *)base;
  return cursor->row >= cursor->rows.count;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (struct cursor *)base;
  const struct value_table *table = ((struct vtab *)base->pVtab)->module->table;
  const struct shown_value *row = &cursor->rows.list[cursor->row];
  int text = column - TEXTS, argument = text - table->text_count;
  if (argument >= 0) {
    if (cursor->arguments[argument]) sqlite3_result_value(context, cursor->arguments[argument]);
  } else if (text >= 0) {
    sqlite3_result_text(context, cursor->rows.texts[text], -1, SQLITE_TRANSIENT);
  } else if (column == DISPLAY) {
    sqlite3_result_text(context, row->display, -1, SQLITE_TRANSIENT);
  } else if (column != KEY) {
    sqlite3_result_double(context, row->numbers[column - VALUE]); /* SQLite turns NaN into NULL */
  } else if (row->key) {
    sqlite3_result_text(context, row->key, -1, SQLITE_TRANSIENT);
  } else if (row->component >= 0) {
    sqlite3_result_int(context, row->component);
  }
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((struct cursor *)base)->row;
  return SQLITE_OK;
}

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
  host_release(module->host);
  sqlite3_free(module);
}

int value_table_register(sqlite3 *db, struct host *host, const struct value_table *table) {
  struct module *module = sqlite3_malloc(sizeof *module);
  if (!module) return SQLITE_NOMEM;
  *module = (struct module){host_retain(host), table};
  /* If the registration fails, SQLite calls module_free(). */
  return sqlite3_create_module_v2(db, table->name, &methods, module, module_free);
}
