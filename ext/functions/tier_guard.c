/* tier_guard.c: see tier_guard.h. Tests: tests/functions/test_guard.py */
#include "functions/tier_guard.h"

#include <string.h>

#include "functions/public_tables.h"
#include "ledger/ledger.h"
#include "os/thread.h"
#include "query/private_connection.h"

SQLITE_EXTENSION_INIT3

/* ---- what is allowed ------------------------------------------------------------------------- */

/* Functions of this extension that compute from their arguments alone. */
static const char *const planning[] = {"dp_brownian_gamma",
                                       "dp_brownian_rate",
                                       "dp_delta",
                                       "dp_diffusion_rate",
                                       "dp_epsilon",
                                       "dp_gaussian_mse",
                                       "dp_hockey_gaussian",
                                       "dp_hockey_laplace",
                                       "dp_iterated_gaussian",
                                       "dp_iterated_laplace",
                                       "dp_iteration",
                                       "dp_iteration_best",
                                       "dp_iteration_path",
                                       "dp_kernel_coupling",
                                       "dp_kernel_delta",
                                       "dp_kernel_dobrushin",
                                       "dp_kernel_dobrushin_epsilon",
                                       "dp_kernel_doeblin",
                                       "dp_kernel_epsilon",
                                       "dp_kernel_pair",
                                       "dp_kernel_power",
                                       "dp_kernel_renyi",
                                       "dp_kernel_ultra",
                                       "dp_laplace2_epsilon",
                                       "dp_laplace2_pdf",
                                       "dp_lipschitz_gaussian",
                                       "dp_ou_clock",
                                       "dp_ou_gamma",
                                       "dp_ou_mse",
                                       "dp_ou_rate",
                                       "dp_ou_rho",
                                       "dp_ou_shrink",
                                       "dp_ou_theta",
                                       "dp_ou_time",
                                       "dp_ou_variance",
                                       "dp_pgm_mse",
                                       "dp_rate",
                                       "dp_rdp_gaussian",
                                       "dp_rdp_laplace",
                                       "dp_rdp_response",
                                       "dp_sgd_delta",
                                       "dp_sgd_delta_laplace",
                                       "dp_sgd_delta_random_stop",
                                       "dp_sgd_delta_rdp",
                                       "dp_sgd_lipschitz",
                                       "dp_sgd_rate",
                                       "dp_sigma",
                                       "dp_version",
                                       "dp_zcdp_epsilon"};

/* What the members of a tier may do with the functions and tables that need the ledger. */
enum use { TO_ALL, TO_ASK, TO_OWNER };
static const struct {
  const char *name;
  enum use use;
} of_ledger[] = {{"dp_answer", TO_ASK},     {"dp_batch", TO_OWNER},    {"dp_certificate", TO_ALL},
                 {"dp_clipping", TO_ALL},   {"dp_diffuse", TO_OWNER},  {"dp_discard", TO_OWNER},
                 {"dp_export", TO_OWNER},   {"dp_report", TO_ALL},     {"dp_drop_tier", TO_OWNER},
                 {"dp_exposure", TO_OWNER}, {"dp_grant", TO_OWNER},    {"dp_guard", TO_ALL},
                 {"dp_init", TO_OWNER},     {"dp_interval", TO_OWNER}, {"dp_mix", TO_OWNER},
                 {"dp_plan", TO_ASK},       {"dp_predict", TO_OWNER},  {"dp_protect", TO_OWNER},
                 {"dp_public", TO_OWNER},   {"dp_release", TO_ASK},    {"dp_sgd_profile", TO_OWNER},
                 {"dp_append", TO_OWNER},   {"dp_span", TO_ALL},       {"dp_table", TO_ALL},
                 {"dp_parts", TO_ALL},      {"dp_tier", TO_OWNER},     {"dp_verify", TO_OWNER},
                 {"dp_within", TO_OWNER}};

/* Pragmas that show the schema of the tables in main, which are public. */
static const char *const pragmas[] = {"database_list",  "foreign_key_list", "index_info",
                                      "index_list",     "index_xinfo",      "table_info",
                                      "schema_version", "table_list",       "table_xinfo"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static int is_in(const char *const *list, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (sqlite3_stricmp(list[i], name) == 0) return 1;
  return 0;
}

static int function_admitted(const struct tier_guard *guard, const char *name) {
  if (is_in(planning, COUNT(planning), name)) return 1;
  /*
  ** tier_guard_enter() checks these functions when they run, because its error can say what is
  ** allowed.
  */
  for (int i = 0; i < COUNT(of_ledger); i++)
    if (sqlite3_stricmp(of_ledger[i].name, name) == 0) return 1;
  return function_is_allowed(&guard->functions, name);
}

/* The second line (tier_guard.h). What is secret is out of reach without it. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  const struct tier_guard *guard = context;
  int admitted = 0;
  (void)schema;
  (void)inner;
  if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE || action == SQLITE_CREATE_INDEX) {
    /*
    ** SQLite asks for an index when it reads the key of a virtual table. An index that is to be
    ** stored fails, because main is read-only.
    */
    admitted = 1;
  } else if (action == SQLITE_TRANSACTION || action == SQLITE_SAVEPOINT) {
    /*
    ** A transaction changes nothing here. The file is read on private connections, and each
    ** statement sees the state of its own time. So a transaction that is left open keeps no lock on
    ** the file. The charge of a question stays after a ROLLBACK, as without a guard.
    */
    admitted = 1;
  } else if (action == SQLITE_FUNCTION) {
    admitted = second && function_admitted(guard, second);
  } else if (action == SQLITE_READ) {
    /* main contains only public tables, so only some pragmas are refused. */
    admitted = first && (sqlite3_strnicmp(first, "pragma_", 7) != 0 ||
                         is_in(pragmas, COUNT(pragmas), first + 7));
  } else if (action == SQLITE_PRAGMA) {
    admitted = first && is_in(pragmas, COUNT(pragmas), first) &&
               (!second || strcmp(first, "schema_version") != 0); /* a value would be written */
  } else if (action == SQLITE_INSERT || action == SQLITE_UPDATE) {
    /* SQLite asks this when it reads the columns of a virtual table. */
    admitted = first && strcmp(first, "sqlite_master") == 0;
  }
  return admitted ? SQLITE_OK : SQLITE_DENY;
}

/* ---- setting the guard ----------------------------------------------------------------------- */

void tier_guard_free(struct tier_guard *guard) {
  if (!guard) return;
  json_list_free(guard->outward);
  private_collector_close(guard->reader);
  sqlite3_free(guard->tier);
  sqlite3_free(guard->grant);
  sqlite3_free(guard);
}

const char *const tier_guard_modules[] = {PUBLIC_TABLE_MODULE, "fts3", "fts5", 0};

static struct tier_guard *make(const struct tier_guard_terms *terms) {
  struct tier_guard *guard = sqlite3_malloc(sizeof *guard);
  if (!guard) return 0;
  *guard = (struct tier_guard){.pad = terms->pad, .limits = terms->limits};
  guard->tier = sqlite3_mprintf("%s", terms->tier);
  guard->grant = terms->grant ? sqlite3_mprintf("%s", terms->grant) : 0;
  if (guard->tier && (guard->grant || !terms->grant)) return guard;
  tier_guard_free(guard);
  return 0;
}

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

/*
** Fails if something uses `main`, or if the connection has other databases than `main` and an empty
** `temp`.
*/
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

/*
** Opens the file once more, and checks that the connection can read it. It needs no mutex, because
** it is used only in statements of the guarded connection, which hold the mutex of that connection.
*/
static sqlite3 *open_again(sqlite3 *db, struct error *error) {
  sqlite3 *opened;
  int mode = sqlite3_db_readonly(db, "main") ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  int timeout = integer_of(db, "PRAGMA busy_timeout");
  int threads = sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, -1);
  if (!private_connection_open(&opened, db, mode | SQLITE_OPEN_NOMUTEX, error)) return 0;
  sqlite3_busy_timeout(opened, timeout);
  sqlite3_limit(opened, SQLITE_LIMIT_WORKER_THREADS, threads);
  if (integer_of(opened, "SELECT count(*) FROM main.sqlite_master") >= 0) return opened;
  error_set(error, "cannot read the database on a second connection: %s", sqlite3_errmsg(opened));
  sqlite3_close_v2(opened);
  return 0;
}

struct tier_guard *tier_guard_set(sqlite3 *db, struct ledger *ledger,
                                  const struct tier_guard_terms *terms, struct error *error) {
  sqlite3 *file = 0;
  if (!check_library(error) || !check_idle(db, error) || !check_file(db, error)) return 0;
  struct tier_guard *guard = make(terms);
  int going = guard ? 1 : error_set_memory(error);
  if (going && allowed_functions_read(&guard->functions, db) != SQLITE_OK)
    going = error_set(error, "cannot list the functions: %s", sqlite3_errmsg(db));
  if (going) going = (file = open_again(db, error)) != 0;
  if (going && !(guard->reader = private_collector_new(file))) going = error_set_memory(error);
  if (going) going = (file = open_again(db, error)) != 0;
  if (going) going = public_tables_install(db, file, ledger, terms->policy, error);
  if (!going) {
    tier_guard_free(guard);
    return 0;
  }
  /*
  ** Takes away from the connection what SQL could use to open the file again, and virtual tables.
  ** SQLite would crash if a virtual table that has no entry in the schema was used before and after
  ** its database is replaced. The two modules that stay make no such tables, and SQLite's functions
  ** fts3_tokenizer() and fts5() use memory that their removal would free.
  */
  sqlite3_drop_modules(db, (const char **)tier_guard_modules);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, (int *)0);
  /* Statements are then compiled again. */
  sqlite3_set_authorizer(db, GUARD_AUTHORIZERS ? authorize : 0, guard);
  ledger_use_database(ledger, guard->reader->db);
  guard->outward = terms->outward;
  return guard;
}

/* ---- running functions ----------------------------------------------------------------------- */

int tier_guard_enter(struct tier_guard *guard, const char *name, struct error *error) {
  if (!guard) return 1;
  enum use use = name ? TO_OWNER : TO_ALL;
  for (int i = 0; name && i < COUNT(of_ledger); i++)
    if (strcmp(of_ledger[i].name, name) == 0) use = of_ledger[i].use;
  if (use == TO_OWNER || (use == TO_ASK && !guard->grant))
    return error_set(error,
                     "this connection is guarded for tier '%s' and may not use it (allowed: SELECT "
                     "from public tables and from the tables of this extension, planning%s)",
                     guard->tier,
                     guard->grant ? ", and dp_release, dp_answer and dp_plan at this tier" : "");
  if (use == TO_ASK) guard->entered = clock_milliseconds();
  return 1;
}

/* Waits until the time since the question began is 1, 2, 4, 8, ... times the pad. */
static void wait(const struct tier_guard *guard) {
  int64_t length = guard->pad, left;
  while (guard->entered + length < clock_milliseconds()) length *= 2;
  while ((left = guard->entered + length - clock_milliseconds()) > 0)
    clock_sleep((unsigned)(left < 100 ? left : 100) * 1000);
}

void tier_guard_leave(struct tier_guard *guard) {
  if (!guard) return;
  if (guard->entered && guard->pad) wait(guard);
  guard->entered = 0;
}
