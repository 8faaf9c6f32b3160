/*
** guest_tables.c: the tables of a guarded connection besides the public tables: those of this
** extension, SQLite's json_each and json_tree, and the names of declared tables that are not there.
** dp_guard() removes all virtual tables from the
** connection (tier_guard.c), and SQLite has no function to register its own tables again. These two
** tables therefore read those of a private connection in memory.
** Tests: tests/functions/test_guard.py, tests/functions/test_guard_secrecy.py
*/
#include <string.h>

#include "base/own_connection.h"
#include "base/sql_functions.h"
#include "functions/functions.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"

SQLITE_EXTENSION_INIT3

#define COLUMNS "key, value, type, atom, id, parent, fullkey, path, json"
#define JSON    8 /* the hidden columns: the arguments of the table */

struct vtab {
  sqlite3_vtab base;
  sqlite3 *db; /* the private connection */
  const char *name;
};

struct cursor {
  sqlite3_vtab_cursor base;
  sqlite3_stmt *row; /* null: no rows */
  sqlite3_int64 number;
};

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc;
  (void)argv;
  (void)error;
  int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(key, value, type, atom, id, parent, fullkey,"
                                    " path, json HIDDEN, root HIDDEN)");
  struct vtab *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct vtab){.name = aux};
  *vtab = &table->base;
  rc = own_connection_open(&table->db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0);
  if (rc == SQLITE_OK) return sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  sqlite3_close_v2(table->db);
  sqlite3_free(table);
  *vtab = 0;
  return rc;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_close_v2(((struct vtab *)vtab)->db);
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* Without the first argument, the table has no rows. */
static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int rc = row_table_plan(info, JSON, 2);
  info->estimatedCost = info->idxNum & 1 ? 100 : 1e20;
  info->estimatedRows = 100;
  return rc;
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
  sqlite3_finalize(cursor->row); /* the error of a step has been reported */
  cursor->row = 0;
}

static int xClose(sqlite3_vtab_cursor *base) {
  forget((struct cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static int fail(struct cursor *cursor, int rc) {
  struct vtab *table = (struct vtab *)cursor->base.pVtab;
  sqlite3_free(table->base.zErrMsg);
  table->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(table->db));
  forget(cursor);
  return rc;
}

static int xNext(sqlite3_vtab_cursor *base) {
  struct cursor *cursor = (struct cursor *)base;
  int rc = sqlite3_step(cursor->row);
  cursor->number++;
  if (rc == SQLITE_DONE) forget(cursor);
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : fail(cursor, rc);
}

static int xFilter(sqlite3_vtab_cursor *base, int given, const char *text, int argc,
                   sqlite3_value **argv) {
  struct cursor *cursor = (struct cursor *)base;
  struct vtab *table = (struct vtab *)base->pVtab;
  (void)text;
  forget(cursor);
  cursor->number = -1;
  if (!(given & 1)) return SQLITE_OK;
  char *sql = sqlite3_mprintf("SELECT " COLUMNS ", root FROM %s(?1%s)", table->name,
                              argc > 1 ? ", ?2" : "");
  int rc = sql ? sqlite3_prepare_v2(table->db, sql, -1, &cursor->row, 0) : SQLITE_NOMEM;
  sqlite3_free(sql);
  for (int i = 0; i < argc && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(cursor->row, i + 1, argv[i]);
  return rc == SQLITE_OK ? xNext(base) : fail(cursor, rc);
}

static int xEof(sqlite3_vtab_cursor *base) {
  return !((struct cursor *)base)->row;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  struct cursor *cursor = (struct cursor *)base;
  sqlite3_result_value(context, sqlite3_column_value(cursor->row, column));
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((struct cursor *)base)->number;
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

/* ---- names of tables that are not there ------------------------------------------------------ */

/* Fails with the message in `aux`. SQLite connects the table when a statement names it. */
static int xConnect_absent(sqlite3 *db, void *aux, int argc, const char *const *argv,
                           sqlite3_vtab **vtab, char **error) {
  (void)db;
  (void)argc;
  (void)argv;
  (void)vtab;
  *error = sqlite3_mprintf("%s", aux);
  return SQLITE_ERROR;
}

static const sqlite3_module absent = {.xConnect = xConnect_absent};

/* Returns what a statement that reads a declared table is told, or null if memory runs out. */
static char *advice(const struct tier_guard *guard, const struct ledger_declaration *declared) {
  if (declared->role == POLICY_PUBLIC)
    return sqlite3_mprintf("table '%s' is gone or has changed since it was declared public "
                           "(its owner declares it again: dp_public)",
                           declared->table);
  if (!guard->grant)
    return sqlite3_mprintf("the rows of table '%s' are protected, and this connection may not ask "
                           "about them (dp_value has what is published)",
                           declared->table);
  char *question = sqlite3_mprintf("SELECT 1 FROM \"%w\"", declared->table);
  char *text = question ? sqlite3_mprintf("the rows of table '%s' are protected (ask about them: "
                                          "SELECT display FROM dp_answer(%Q, 'count', %Q, "
                                          "'{\"name\":\"mine\",\"clip\":1}'))",
                                          declared->table, guard->tier, question)
                        : 0;
  sqlite3_free(question);
  return text;
}

/*
** Gives the names of declared tables an error with advice. A name that main has is that of a public
** table. What a name is told depends on the policy, which dp_column lists, and not on the file. The
** names of modules that dp_guard() keeps are left out, because SQLite would free these modules.
*/
static int register_absent(sqlite3 *db, const struct tier_guard *guard,
                           const struct ledger_policy *policy) {
  int rc = SQLITE_OK;
  for (int i = 0; i < policy->count && rc == SQLITE_OK; i++) {
    const char *name = policy->list[i].table;
    int is_kept = 0;
    for (const char *const *kept = tier_guard_modules; *kept; kept++)
      is_kept |= sqlite3_stricmp(*kept, name) == 0;
    if (is_kept) continue;
    char *text = advice(guard, &policy->list[i]);
    rc = text ? sqlite3_create_module_v2(db, name, &absent, text, sqlite3_free) : SQLITE_NOMEM;
  }
  return rc;
}

/* ---- all tables ------------------------------------------------------------------------------ */

int guest_tables_register(sqlite3 *db, struct host *host, const struct ledger_policy *policy) {
  static const struct row_table *const tables[] = {&answer_table, &column_table, &cross_table_table,
                                                   &part_table, &span_table};
  static char each[] = "json_each", tree[] = "json_tree";
  int rc = register_absent(db, host->guard, policy); /* a table below may have such a name */
  if (rc == SQLITE_OK) rc = tables_register(db, host);
  for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == SQLITE_OK; i++)
    rc = row_table_register(db, tables[i], host_retain(host), host_release_pointer);
  if (rc == SQLITE_OK) rc = host->register_others(db);
  if (rc == SQLITE_OK) rc = sqlite3_create_module_v2(db, each, &module, each, 0);
  return rc == SQLITE_OK ? sqlite3_create_module_v2(db, tree, &module, tree, 0) : rc;
}
