/* diffuse.c: entry point of the extension. Loading checks the host's SQLite, turns off GSL's error
** handler and registers the functions. Loading does not open, create or write any file. */
#include <gsl/gsl_errno.h>

#include "categories/categories.h"
#include "functions/functions.h"
#include "models/models.h"
#include "os/os.h"
#include "papers/papers.h"

SQLITE_EXTENSION_INIT1

#define SQLITE_FLOOR 3034000

/* EXPORTED marks the entry points, which are the only symbols that the shared object exports. */
#if !defined(_WIN32)
#define EXPORTED __attribute__((visibility("default")))
#elif !defined(SQLITE_CORE)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED
#endif

/* The rooms beside the core that make releases. */
static const struct room *const rooms[] = {&categories_room, &models_room, 0};

/* Stores the table of functions through which the extension calls SQLite. All connections use the
** table of the SQLite library that loaded the extension first. If a second SQLite library in the
** process loads the extension, the function returns 0 with a message. */
static int take_api(const sqlite3_api_routines *api, char **error) {
#ifndef SQLITE_CORE
  if (!sqlite3_api) SQLITE_EXTENSION_INIT2(api);
  int same = api && api == sqlite3_api;
  /* Advice: Two libraries of one process each contain an SQLite. */
  if (!same && api)
    *error =
        api->mprintf("diffuse is in use by another SQLite library of this process (load a copy "
                     "of the file, under another name)");
  return same;
#else
  (void)api;
  (void)error;
  return 1;
#endif
}

/* Returns whether SQLite's memory and the `taken` bytes for tables of units are together within
** PRAGMA hard_heap_limit. */
static int is_within_limit(size_t taken) {
  sqlite3_int64 limit = sqlite3_hard_heap_limit64(-1);
  return limit <= 0 ||
         (sqlite3_uint64)taken + (sqlite3_uint64)sqlite3_memory_used() <= (sqlite3_uint64)limit;
}

/* Sets the message that says why loading failed, if the host wants one. */
static int fail_load(char **message, int rc, const char *format, const char *detail) {
  if (message) *message = sqlite3_mprintf(format, detail);
  return rc;
}

/* Registers the tables that a guarded connection has, too. */
static int register_tables(sqlite3 *db, struct host *host) {
  static const struct row_table *const tables[] = {&answer_table, &column_table, &cross_table_table,
                                                   &part_table, &span_table};
  int rc = SQLITE_OK;
  for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == SQLITE_OK; i++)
    rc = row_table_register(db, tables[i], host_retain(host), host_release_pointer);
  if (rc == SQLITE_OK) rc = ledger_tables_register(db, host);
  return rc == SQLITE_OK ? amplify_register(db) : rc;
}

static int register_all(sqlite3 *db, struct host *host) {
  static const struct function *const lists[] = {
      ledger_functions, policy_functions,  guard_functions,   batch_functions,    plan_functions,
      figure_functions, release_functions, partial_functions, reporting_functions};
  int rc = rates_register(&host->pure);
  if (rc == SQLITE_OK) rc = pure_register(&host->pure, &version_function);
  if (rc == SQLITE_OK) rc = papers_register(&host->pure);
  for (size_t i = 0; i < sizeof lists / sizeof *lists && rc == SQLITE_OK; i++)
    rc = functions_register(db, host, lists[i]);
  if (rc == SQLITE_OK)
    rc = row_table_register(db, &policy_plan_table, host_retain(host), host_release_pointer);
  if (rc == SQLITE_OK) rc = releases_register(db, host);
  if (rc == SQLITE_OK) rc = aggregates_register(db, host);
  if (rc == SQLITE_OK) rc = partials_register(db, host);
  if (rc == SQLITE_OK) rc = register_tables(db, host);
  for (int i = 0; rooms[i] && rc == SQLITE_OK; i++)
    rc = functions_register(db, host, rooms[i]->functions);
  return rc;
}

/* If the extension is loaded again on the same connection, this function registers nothing. New
** functions would get a new struct host, and a ledger in memory that belongs to the old struct host
** would be lost. SQLite also refuses to replace functions while a statement runs. */
static int load(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  static struct mutex mutex = MUTEX_INITIALIZER;
  mutex_lock(&mutex); /* several connections may load the extension at once */
  int taken = take_api(api, error);
  if (taken) rooms_open(rooms);
  mutex_unlock(&mutex);
  if (!taken) return SQLITE_ERROR;
  if (sqlite3_libversion_number() < SQLITE_FLOOR)
    return fail_load(error, SQLITE_ERROR, "diffuse needs SQLite 3.34 or newer, this is %s",
                     sqlite3_libversion());
  if (host_is_complete(db)) return SQLITE_OK;
  gsl_set_error_handler_off(); /* the default handler aborts the process */
  memory_limit(is_within_limit);
  struct host *host = host_new(db, register_tables);
  if (!host) return SQLITE_NOMEM;
  int rc = register_all(db, host);
  host->complete = rc == SQLITE_OK;
  host_release(host); /* each registered function and table has a reference of its own */
  if (rc == SQLITE_OK) return SQLITE_OK;
  return fail_load(error, rc, "diffuse cannot add its functions to this connection: %s",
                   sqlite3_errmsg(db));
}

EXPORTED int sqlite3_diffuse_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  return load(db, error, api);
}

/* SQLite looks for this name first, and then for a name that it makes of the file's. A copy of the
** library therefore loads under any name. It must not call sqlite3_diffuse_init(): a name that is
** exported stands for the function of the first library that was loaded. A test build has an entry
** point of its own. */
#ifndef SQLITE_CORE
#ifndef _WIN32
__attribute__((weak))
#endif
EXPORTED int
sqlite3_extension_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  return load(db, error, api);
}
#endif
