/*
** columns.c: dp_column, a read-only table of the columns of all declared tables. The members of a
** tier need it to write questions, because a guarded connection does not have protected tables.
*/
#include <string.h>

#include "functions/functions.h"
#include "functions/host.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"
#include "query/policy_tables.h"

SQLITE_EXTENSION_INIT3

#define NAME "dp_column"

struct table {
  sqlite3_vtab base;
  struct host *host;
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct ledger_policy policy;
  struct table_facts *facts; /* facts[i] describes policy.list[i] */
  int table, column;         /* the current row */
};

static int fail(sqlite3_vtab *vtab, const char *message) {
  sqlite3_free(vtab->zErrMsg);
  vtab->zErrMsg = sqlite3_mprintf("%s: %s", NAME, message);
  return SQLITE_ERROR;
}

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc;
  (void)argv;
  (void)error;
  int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(table_name TEXT, column_name TEXT,"
                                    " declared_type TEXT, role TEXT)");
  struct table *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct table){.host = aux};
  *vtab = &table->base;
  return SQLITE_OK;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  info->estimatedCost = 1000;
  info->estimatedRows = 1000;
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

static void forget(struct cursor *cursor) {
  for (int i = 0; cursor->facts && i < cursor->policy.count; i++)
    table_facts_clear(&cursor->facts[i]);
  sqlite3_free(cursor->facts);
  ledger_policy_free(&cursor->policy);
  cursor->facts = 0;
  cursor->table = cursor->column = 0;
}

static int xClose(sqlite3_vtab_cursor *base) {
  forget((struct cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

/* Reads the declared tables. A table that no longer exists has no columns. */
static int read_tables(struct cursor *cursor, struct host *host, struct error *error) {
  struct ledger *ledger = host->session.ledger;
  sqlite3 *db = host->guard ? tier_guard_reader(host->guard)->db : host->collector.db;
  int read = ledger_ready(ledger) && ledger_begin_reading(ledger) &&
             ledger_policy_read(ledger, &cursor->policy);
  ledger_rollback(ledger);
  if (!read) return error_set(error, "%s", error_text(ledger_error(ledger)));
  size_t size = sizeof *cursor->facts * (size_t)(cursor->policy.count + 1);
  cursor->facts = sqlite3_malloc64(size);
  if (!cursor->facts) return error_set_memory(error);
  memset(cursor->facts, 0, size);
  for (int i = 0; i < cursor->policy.count; i++) {
    struct error missing = {0};
    if (!table_facts_read(&cursor->facts[i], db, cursor->policy.list[i].table, &missing))
      table_facts_clear(&cursor->facts[i]);
    if (error_is_memory(&missing)) error_set_memory(error);
    error_clear(&missing);
  }
  return !error_is_set(error);
}

static int xEof(sqlite3_vtab_cursor *base) {
  const struct cursor *cursor = (struct cursor *)base;
  return cursor->table >= cursor->policy.count;
}

/* Moves over tables without columns. */
static void settle(struct cursor *cursor) {
  while (!xEof(&cursor->base) && cursor->column >= cursor->facts[cursor->table].count) {
    cursor->table++;
    cursor->column = 0;
  }
}

static int xFilter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)number;
  (void)text;
  (void)argc;
  (void)argv;
  struct cursor *cursor = (struct cursor *)base;
  struct error error = {0};
  forget(cursor);
  if (!read_tables(cursor, ((struct table *)base->pVtab)->host, &error)) {
    forget(cursor);
    int rc = fail(base->pVtab, error_text(&error));
    error_clear(&error);
    return rc;
  }
  settle(cursor);
  return SQLITE_OK;
}

static int xNext(sqlite3_vtab_cursor *base) {
  struct cursor *cursor = (struct cursor *)base;
  cursor->column++;
  settle(cursor);
  return SQLITE_OK;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (struct cursor *)base;
  const struct table_facts *facts = &cursor->facts[cursor->table];
  int is_public = cursor->policy.list[cursor->table].role == POLICY_PUBLIC;
  const char *texts[] = {facts->name, facts->columns[cursor->column].name,
                         facts->columns[cursor->column].type, is_public ? "public" : "protected"};
  sqlite3_result_text(context, texts[column], -1, SQLITE_TRANSIENT);
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  const struct cursor *cursor = (struct cursor *)base;
  *rowid = (sqlite3_int64)cursor->table << 32 | cursor->column;
  return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = xConnect,
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

int columns_register(sqlite3 *db, struct host *host) {
  /* If the registration fails, SQLite releases the host. */
  return sqlite3_create_module_v2(db, NAME, &module, host_retain(host), host_release_pointer);
}
