/* guard.c: the guarded connection (internal.h says what a guard is): what its members may do and
** read, dp_guard(), which hands a connection to the members of one tier, and dp_grant(), which sets
** aside a part of a budget for their questions.
** Tests: tests/functions/test_guard.py, tests/functions/test_guard_secrecy.py,
** tests/ledger/test_grants.py */
#include <math.h>
#include <string.h>

#include "base/own_connection.h"
#include "base/sql_functions.h"
#include "functions/internal.h"
#include "ledger/ledger.h"

SQLITE_EXTENSION_INIT3

/* ---- what is allowed ------------------------------------------------------------------------- */

/* Pragmas that show the schema of the tables in main, which are public. */
static const char *const pragmas[] = {"database_list",  "foreign_key_list", "index_info",
                                      "index_list",     "index_xinfo",      "table_info",
                                      "schema_version", "table_list",       "table_xinfo"};

static int is_shown(const char *pragma) {
  for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
    if (sqlite3_stricmp(pragmas[i], pragma) == 0) return 1;
  return 0;
}

/* The second line (internal.h). What is secret is out of reach without it. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  const struct host *host = context;
  int admitted = 0;
  (void)schema;
  (void)inner;
  if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE || action == SQLITE_CREATE_INDEX) {
    /* SQLite asks for an index when it reads the key of a virtual table. An index that is to be
    ** stored fails, because main is read-only. */
    admitted = 1;
  } else if (action == SQLITE_TRANSACTION || action == SQLITE_SAVEPOINT) {
    /* A transaction changes nothing here. The file is read on private connections, and each
    ** statement sees the state of its own time. So a transaction that is left open keeps no lock on
    ** the file. The charge of a question stays after a ROLLBACK, as without a guard. */
    admitted = 1;
  } else if (action == SQLITE_FUNCTION) {
    /* guard_enter() checks those that need the ledger when they run: its error says what is
    ** allowed. */
    admitted =
        second && (host_has(host, second) || function_is_allowed(&host->guard->functions, second));
  } else if (action == SQLITE_READ) {
    /* main contains only public tables, so only some pragmas are refused. */
    admitted = first && (sqlite3_strnicmp(first, "pragma_", 7) != 0 || is_shown(first + 7));
  } else if (action == SQLITE_PRAGMA) {
    admitted = first && is_shown(first) &&
               (!second || strcmp(first, "schema_version") != 0); /* a value would be written */
  } else if (action == SQLITE_INSERT || action == SQLITE_UPDATE) {
    /* SQLite asks this when it reads the columns of a virtual table. */
    admitted = first && strcmp(first, "sqlite_master") == 0;
  }
  return admitted ? SQLITE_OK : SQLITE_DENY;
}

/* The modules of virtual tables that a guarded connection keeps. A null pointer is at the end. */
static const char *const kept_modules[] = {PUBLIC_TABLE_MODULE, "fts3", "fts5", 0};

/* ---- json_each and json_tree ----------------------------------------------------------------- */

/* dp_guard() removes all virtual tables from the connection, and SQLite has no function to register
** its own tables again. These two tables therefore read those of a private connection in memory. */

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

static const sqlite3_module json_module = {.xConnect = xConnect,
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
static char *advice(const struct guard *guard, const struct ledger_declaration *declared) {
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

/* Gives the names of declared tables an error with advice. A name that main has is that of a public
** table. What a name is told depends on the policy, which dp_column lists, and not on the file. The
** names of `kept_modules` are left out, because SQLite would free these modules. */
static int register_absent(sqlite3 *db, const struct guard *guard,
                           const struct ledger_policy *policy) {
  int rc = SQLITE_OK;
  for (int i = 0; i < policy->count && rc == SQLITE_OK; i++) {
    const char *name = policy->list[i].table;
    int is_kept = 0;
    for (const char *const *kept = kept_modules; *kept; kept++)
      is_kept |= sqlite3_stricmp(*kept, name) == 0;
    if (is_kept) continue;
    char *text = advice(guard, &policy->list[i]);
    rc = text ? module_register(db, name, &absent, text, sqlite3_free) : SQLITE_NOMEM;
  }
  return rc;
}

/* Registers the tables of a guarded connection besides the public tables. A table of this extension
** takes the place of an absent one of the same name. */
static int register_tables(struct host *host, const struct ledger_policy *policy) {
  static char each[] = "json_each", tree[] = "json_tree";
  sqlite3 *db = host->collector.db;
  int rc = register_absent(db, host->guard, policy);
  if (rc == SQLITE_OK) rc = host->register_tables(db, host);
  if (rc == SQLITE_OK) rc = sqlite3_create_module_v2(db, each, &json_module, each, 0);
  return rc == SQLITE_OK ? sqlite3_create_module_v2(db, tree, &json_module, tree, 0) : rc;
}

/* ---- setting the guard ----------------------------------------------------------------------- */

/* Fails if this SQLite cannot replace a database or refuse a statement. */
static int check_library(struct error *error) {
  int can_replace = sqlite3_libversion_number() >= 3039000;
#ifndef SQLITE_CORE
  can_replace = can_replace && sqlite3_api->serialize && sqlite3_api->deserialize;
#endif
  if (!can_replace)
    return error_set(error, "this SQLite cannot replace a database (use SQLite 3.39 or newer, "
                            "built without SQLITE_OMIT_DESERIALIZE)");
#ifdef SQLITE_CORE
  return 1;
#else
  return sqlite3_api->set_authorizer ||
         error_set(error, "this SQLite has no authorizers (use one built without "
                          "SQLITE_OMIT_AUTHORIZATION)");
#endif
}

/* Returns the first value of a statement as an integer, or -1. */
static int integer_of(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  int number = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK && row &&
      sqlite3_step(row) == SQLITE_ROW)
    number = sqlite3_column_int(row, 0);
  sqlite3_finalize(row); /* after an error, the number is -1 */
  return number;
}

/* Fails if something uses `main`, or if the connection has other databases than `main` and an empty
** `temp`. */
static int check_idle(sqlite3 *db, struct error *error) {
  int busy = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s))
    busy += sqlite3_stmt_busy(s) != 0;
  if (busy > 1) /* one busy statement is the caller of dp_guard() */
    return error_set(error, "another statement of this connection is still running (finish or "
                            "reset it, and close blobs)");
  if (!sqlite3_get_autocommit(db))
    return error_set(error, "this connection has an open transaction (commit it first, and call "
                            "dp_guard with autocommit on)");
  if (sqlite3_txn_state(db, "main") != SQLITE_TXN_NONE)
    return error_set(error, "the statement that calls it reads a table (SELECT dp_guard('…') "
                            "without a table)");
  if (integer_of(db, "SELECT count(*) FROM pragma_database_list"
                     " WHERE name NOT IN ('main', 'temp')") != 0)
    return error_set(error, "this connection has attached a database (detach it first)");
  /* Looks into temp only if it is open, because Datasette would show it as an attached database. */
  return (integer_of(db, "SELECT count(*) FROM pragma_database_list WHERE name = 'temp'") == 0 ||
          integer_of(db, "SELECT count(*) FROM sqlite_temp_master") == 0) ||
         error_set(error, "this connection has temporary tables, views or triggers (drop them "
                          "first)");
}

/* Fails if another connection cannot read what this one reads. */
static int check_file(sqlite3 *db, struct error *error) {
  const char *path = sqlite3_db_filename(db, "main");
  sqlite3_vfs *vfs = 0;
  int moved = 0;
  if (!path || !*path ||
      sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs ||
      strcmp(vfs->zName, "memdb") == 0)
    return error_set(error, "main is not a file (VACUUM INTO a file, and open the file)");
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
    return error_set(error, "the database file was moved or deleted (reconnect)");
  if (integer_of(db, "SELECT count(*) FROM pragma_encoding WHERE encoding = 'UTF-8'") != 1)
    return error_set(error, "the file has texts in UTF-16, which a guest would compare and cast in "
                            "another way (dump and restore it, which makes UTF-8)");
  return integer_of(db, "SELECT count(*) FROM pragma_locking_mode"
                        " WHERE locking_mode = 'exclusive'") <= 0 ||
         error_set(error, "this connection locks the file (PRAGMA locking_mode = normal)");
}

/* Opens the file once more, and checks that the connection can read it. It needs no mutex, because
** it is used only in statements of the guarded connection, which hold the mutex of that
** connection. */
static sqlite3 *open_again(sqlite3 *db, struct error *error) {
  sqlite3 *opened;
  int mode = sqlite3_db_readonly(db, "main") ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  int timeout = integer_of(db, "PRAGMA busy_timeout");
  int threads = sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, -1);
  if (!own_connection_again(&opened, db, mode | SQLITE_OPEN_NOMUTEX, error)) return 0;
  sqlite3_busy_timeout(opened, timeout);
  sqlite3_limit(opened, SQLITE_LIMIT_WORKER_THREADS, threads);
  if (integer_of(opened, "SELECT count(*) FROM main.sqlite_master") >= 0) return opened;
  error_set(error, "cannot read the database on a second connection: %s", sqlite3_errmsg(opened));
  sqlite3_close_v2(opened);
  return 0;
}

/* Makes a guard for the members of a tier. Without a grant, its terms are empty. Returns null with
** the error set. */
static struct guard *make(struct host *host, const char *tier, const struct ledger_grant *grant,
                          struct error *error) {
  struct guard *guard = sqlite3_malloc(sizeof *guard);
  sqlite3 *db = host->collector.db, *file = 0;
  int count;
  if (!guard) {
    error_set_memory(error);
    return 0;
  }
  *guard = (struct guard){.tier = sqlite3_mprintf("%s", tier),
                          .grant = grant->name ? sqlite3_mprintf("%s", grant->name) : 0,
                          .pad = grant->pad_ms,
                          .limits = {grant->steps, grant->bytes, grant->seconds}};
  if (grant->diffuse)
    guard->outward = json_list(ledger_json(host->session.ledger), grant->diffuse, 0, &count);
  if (!guard->tier || (grant->name && !guard->grant) || (grant->diffuse && !guard->outward)) {
    error_set_memory(error); /* unless json_list() has set another error */
  } else if (allowed_functions_read(&guard->functions, db) != SQLITE_OK) {
    error_set(error, "cannot list the functions: %s", sqlite3_errmsg(db));
  } else if ((file = open_again(db, error)) != 0 &&
             !(guard->reader = private_collector_new(file))) {
    error_set_memory(error);
  }
  if (!error_is_set(error)) return guard;
  guard_free(guard);
  return 0;
}

/* Sets the guard of a connection, until the connection is closed. Returns 1, or 0 with the error
** set and the connection as it was. The connection has no virtual tables then except for the public
** tables. */
static int set(struct host *host, const char *tier, const struct ledger_policy *policy,
               const struct ledger_grant *grant, struct error *error) {
  struct ledger *ledger = host->session.ledger;
  sqlite3 *db = host->collector.db, *file = 0;
  if (!check_library(error) || !check_idle(db, error) || !check_file(db, error)) return 0;
  struct guard *guard = make(host, tier, grant, error);
  if (!guard || !(file = open_again(db, error)) ||
      !public_tables_install(db, file, ledger, policy, error)) {
    guard_free(guard);
    return 0;
  }
  host->guard = guard;
  /* Takes away from the connection what SQL could use to open the file again, and virtual tables.
  ** SQLite would crash if a virtual table that has no entry in the schema was used before and after
  ** its database is replaced. The modules that stay make no such tables, and SQLite's functions
  ** fts3_tokenizer() and fts5() use memory that their removal would free. */
  sqlite3_drop_modules(db, (const char **)kept_modules);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, (int *)0);
  /* Statements are then compiled again. */
  sqlite3_set_authorizer(db, GUARD_AUTHORIZERS ? authorize : 0, host);
  ledger_use_database(ledger, guard->reader->db);
  return 1;
}

/* ---- dp_guard -------------------------------------------------------------------------------- */

/* Reads what dp_guard() needs to know. */
static int read_terms(struct ledger *ledger, const char *tier, const char *ask,
                      struct ledger_policy *policy, struct ledger_grant *grant) {
  if (!ledger_ready(ledger) || !ledger_begin_reading(ledger)) return 0;
  int going = tier_is_known(ledger, tier) && ledger_policy_read(ledger, policy) &&
              (!ask || ledger_grant_find(ledger, ask, grant));
  if (going && ask && strcmp(grant->tier, tier) != 0)
    going = error_set(ledger_error(ledger), "grant '%s' is of tier '%s', not '%s'", ask,
                      grant->tier, tier);
  if (going && ask && !policy->count)
    going = error_set(ledger_error(ledger),
                      "questions of others need a ledger with a policy (dp_protect)");
  ledger_rollback(ledger);
  return going;
}

static int guard_connection(struct host *host, const char *tier, const char *ask) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  struct ledger_policy policy = {0};
  struct ledger_grant grant = {0};
  int going = read_terms(ledger, tier, ask, &policy, &grant) && ledger_guest(ledger, tier) &&
              ledger_use_grant(ledger, ask) && set(host, tier, &policy, &grant, error);
  if (!host->guard) {
    ledger_guest(ledger, 0);
    ledger_use_grant(ledger, 0);
  } else if (register_tables(host, &policy) != SQLITE_OK) {
    going = error_set_memory(error); /* the connection is guarded, but lacks some tables */
  }
  ledger_policy_free(&policy);
  ledger_grant_clear(&grant);
  return going;
}

/* Pools of connections call dp_guard() again whenever they hand out a connection. A call that asks
** for the guard that is set changes nothing. */
static int check_same(const struct guard *guard, const char *tier, const char *ask,
                      struct error *error) {
  const char *old = guard->grant ? guard->grant : "";
  return (strcmp(guard->tier, tier) == 0 && strcmp(old, ask ? ask : "") == 0) ||
         error_set(error,
                   "this connection is guarded for tier '%s'%s%s%s until it is closed (open "
                   "another one)",
                   guard->tier, *old ? " and grant '" : "", old, *old ? "'" : "");
}

/* dp_guard(tier [, options]) -> the tier. The connection stays guarded until it is closed. */
static int dp_guard(struct call *call) {
  struct host *host = call->host;
  const char *tier = call->texts[0];
  char *ask = 0;
  const struct setting settings[] = {
      {"ask", SETTING_TEXT, &ask, "must be the name of a grant", 0, 0}, {0}};
  int going = call_settings(call, 1, settings) &&
              (host->guard ? check_same(host->guard, tier, ask, call->error)
                           : guard_connection(host, tier, ask));
  sqlite3_free(ask);
  return going;
}

/* ---- dp_grant -------------------------------------------------------------------------------- */

/* Reads the third argument of dp_grant(): a number of questions, or a share. */
static int take_size(sqlite3_value *value, struct ledger_grant *grant, struct error *error) {
  static const struct domain domain = {"share", 0, 1e9, 1, 0};
  double size;
  if (!domain_check(value, &domain, &size, error)) return 0;
  if (size >= 1 && size != floor(size))
    return error_set(error, "share must be a whole number of questions, or a share below 1 of what "
                            "is left");
  grant->questions = size < 1 ? 0 : (int)size;
  grant->share = size < 1 ? size : 0;
  return 1;
}

#define TIERS "must be a JSON array of tiers, such as [\"public\"]"

/* dp_grant(name, tier, share [, options]) -> the name. The grant reserves its part at the tier, at
** every tier inside it, and at the tiers of `diffuse`. A repeated call changes nothing. */
static int dp_grant(struct call *call) {
  static const struct domain pad_domain = {"pad_ms", 1, GRANT_MOST_PAD, 0, 0},
                             seconds_domain = {"seconds", 0, 86400, 1, 0},
                             steps_domain = {"steps", 1000, 1e12, 0, 0},
                             bytes_domain = {"bytes", 1e6, 1e12, 0, 0};
  struct ledger *ledger = call->ledger;
  struct ledger_grant grant = {.name = (char *)call->texts[0],
                               .tier = (char *)call->texts[1],
                               .seconds = 10,
                               .steps = 10000,
                               .bytes = 16 << 20};
  double pad = 500;
  char *diffuse = 0, **outward = 0;
  int count = 0;
  const struct setting settings[] = {
      {"bytes", SETTING_WHOLE, &grant.bytes, 0, 0, &bytes_domain},
      {"diffuse", SETTING_ARRAY, &diffuse, TIERS, 0, 0},
      {"pad_ms", SETTING_WHOLE, &pad, 0, 0, &pad_domain},
      {"seconds", SETTING_NUMBER, &grant.seconds, 0, 0, &seconds_domain},
      {"steps", SETTING_WHOLE, &grant.steps, 0, 0, &steps_domain},
      {0}};
  int going = take_size(call->values[2], &grant, call->error) && call_settings(call, 3, settings);
  if (going && diffuse) {
    outward = json_list(ledger_json(ledger), diffuse, "diffuse " TIERS, &count);
    going = count > 0 || error_set(call->error, "diffuse " TIERS);
    if (going && !(grant.diffuse = json_texts(outward, count)))
      going = error_set_memory(call->error);
  }
  grant.pad_ms = (int)pad;
  going = going && ledger_ready(ledger) &&
          ledger_grant_create(ledger, &grant, (const char *const *)outward, count);
  sqlite3_free(diffuse);
  sqlite3_free(grant.diffuse);
  json_list_free(outward);
  return going;
}

const struct function guard_functions[] = {
    {"dp_guard", 1, 2, TO_ALL, 0, {"tier"}, dp_guard},
    {"dp_grant", 3, 4, TO_OWNER, 0, {"name", "tier"}, dp_grant},
    {0},
};
