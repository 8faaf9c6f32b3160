/* tier_guard.c: see tier_guard.h. */
#include "functions/tier_guard.h"

#include <string.h>

#include "functions/opened_tables.h"
#include "os/clock.h"
#include "query/allowed_functions.h"

SQLITE_EXTENSION_INIT3

struct tier_guard {
  sqlite3 *db;
  char *tier, *grant;
  char **tables; /* the public tables */
  char **outward;
  int table_count;
  int pad;
  int schema;      /* 1: the members may read the schema */
  int inside;      /* greater than 0 while the extension runs SQL of its own, which is admitted */
  char *addresses; /* the addresses of the virtual tables (functions/opened_tables.h) */
  unsigned asked;  /* how often SQLite has called the authorizer */
  unsigned traced; /* how often SQLite has reported that a statement starts */
  int is_replaced; /* the host has set another authorizer or trace callback */
  int64_t entered; /* the time at which the running question began, in ms; 0: none is running */
  struct allowed_functions functions;
};

/* ---- what is allowed ------------------------------------------------------------------------- */

/* Functions of this extension that compute from their arguments alone. */
static const char *const planning[] = {"dp_brownian_gamma",
                                       "dp_brownian_rate",
                                       "dp_debug",
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
                 {"dp_exposure", TO_OWNER}, {"dp_grant", TO_OWNER},    {"dp_guard", TO_OWNER},
                 {"dp_init", TO_OWNER},     {"dp_interval", TO_OWNER}, {"dp_mix", TO_OWNER},
                 {"dp_plan", TO_ASK},       {"dp_predict", TO_OWNER},  {"dp_protect", TO_OWNER},
                 {"dp_public", TO_OWNER},   {"dp_release", TO_ASK},    {"dp_sgd_profile", TO_OWNER},
                 {"dp_tier", TO_OWNER},     {"dp_verify", TO_OWNER}};

/*
** The virtual tables that the members may read: the tables of this extension, and SQLite's
** json_each and json_tree. A virtual table has no root page.
*/
static const char *const tables[] = {"dp_amplify", "dp_answer",  "dp_budget",      "dp_charge",
                                     "dp_grant",   "dp_policy",  "dp_publication", "dp_rdp",
                                     "dp_release", "dp_reserve", "dp_tier",        "dp_value",
                                     "json_each",  "json_tree"};

/*
** What the option schema allows: the columns of sqlite_master, except for rootpage, and pragmas
** that show the schema. A root page tells how many pages the file had when the table was created.
*/
static const char *const schema_tables[] = {"sqlite_master", "sqlite_schema"};
static const char *const schema_columns[] = {"", "type", "name", "tbl_name", "sql"};
static const char *const schema_pragmas[] = {"foreign_key_list", "index_info", "index_list",
                                             "index_xinfo",      "table_info", "table_xinfo"};
/* These pragmas show the schema without a value. With a value, schema_version writes. */
static const char *const plain_pragmas[] = {"database_list", "schema_version"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static int is_in(const char *const *list, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (sqlite3_stricmp(list[i], name) == 0) return 1;
  return 0;
}

static int function_admitted(const struct tier_guard *guard, const char *name) {
  if (is_in(planning, COUNT(planning), name)) return 1;
  /*
  ** may_use() checks these functions when they run, because the error of may_use() can say what is
  ** allowed.
  */
  for (int i = 0; i < COUNT(of_ledger); i++)
    if (sqlite3_stricmp(of_ledger[i].name, name) == 0) return 1;
  /* SQLite before 3.38 lists its own JSON functions as functions of the application. */
  if (sqlite3_libversion_number() < 3038000 && sqlite3_strnicmp(name, "json", 4) == 0) return 0;
  return function_is_allowed(&guard->functions, name);
}

/*
** If a statement uses no column of a table, SQLite passes an empty column name and no schema. The
** name may then also be the name of a common table expression. Such a name passes only if it is in
** one of the two lists, because a table with any other name could be created later.
*/
static int read_admitted(const struct tier_guard *guard, const char *table, const char *column,
                         const char *schema) {
  if (schema ? strcmp(schema, "main") != 0 : *column != 0) return 0;
  return is_in(tables, COUNT(tables), table) ||
         is_in((const char *const *)guard->tables, guard->table_count, table);
}

/* Returns what SQLite shall do about a column of sqlite_master. */
static int schema_column_admitted(const char *column, const char *schema) {
  if (schema ? strcmp(schema, "main") != 0 : *column != 0) return SQLITE_DENY;
  if (is_in(schema_columns, COUNT(schema_columns), column)) return SQLITE_OK;
  return strcmp(column, "rootpage") == 0 ? SQLITE_IGNORE : SQLITE_DENY; /* reads as NULL */
}

static int pragma_admitted(const char *name, const char *value, const char *schema) {
  if (schema && sqlite3_stricmp(schema, "main") != 0) return 0;
  return value ? is_in(schema_pragmas, COUNT(schema_pragmas), name)
               : is_in(plain_pragmas, COUNT(plain_pragmas), name);
}

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  struct tier_guard *guard = context;
  int admitted = 0;
  (void)inner;
  guard->asked++;
  if (guard->inside) return SQLITE_OK;
  if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE) {
    admitted = 1;
  } else if (action == SQLITE_FUNCTION) {
    admitted = second && function_admitted(guard, second);
  } else if (action == SQLITE_READ && first && second) {
    if (guard->schema && is_in(schema_tables, COUNT(schema_tables), first))
      return schema_column_admitted(second, schema);
    admitted = read_admitted(guard, first, second, schema);
  } else if (action == SQLITE_PRAGMA) {
    admitted = guard->schema && first && pragma_admitted(first, second, schema);
  }
  return admitted ? SQLITE_OK : SQLITE_DENY;
}

/*
** SQLite calls this function when a statement starts, before the statement reads a row. Interrupts
** a statement that opens a table which the guard does not allow. The function reads the root pages
** first, so that SQLite compiles the statement again on the current schema.
*/
static int check_started(unsigned event, void *context, void *statement, void *text) {
  struct tier_guard *guard = context;
  (void)event;
  (void)text;
  guard->traced++;
  if (guard->inside) return 0;
  guard->inside++;
  char *pages =
      root_pages(guard->db, (const char *const *)guard->tables, guard->table_count, guard->schema);
  guard->inside--;
  if (!pages || !opens_only(guard->db, sqlite3_sql(statement), pages, guard->addresses))
    sqlite3_interrupt(guard->db);
  sqlite3_free(pages);
  return 0;
}

/* ---- setting the guard ----------------------------------------------------------------------- */

void tier_guard_free(struct tier_guard *guard) {
  if (!guard) return;
  for (int i = 0; guard->tables && guard->tables[i]; i++) sqlite3_free(guard->tables[i]);
  for (int i = 0; guard->outward && guard->outward[i]; i++) sqlite3_free(guard->outward[i]);
  sqlite3_free(guard->tables);
  sqlite3_free(guard->outward);
  sqlite3_free(guard->addresses);
  sqlite3_free(guard->tier);
  sqlite3_free(guard->grant);
  sqlite3_free(guard);
}

/*
** Returns a copy of a list of texts, with a null pointer after the last text. Returns null when out
** of memory.
*/
static char **copy(const char *const *list, int count) {
  char **copies = sqlite3_malloc64(sizeof *copies * (sqlite3_uint64)(count + 1));
  int made = copies != 0;
  if (made) memset(copies, 0, sizeof *copies * (size_t)(count + 1));
  for (int i = 0; made && i < count; i++) made = (copies[i] = sqlite3_mprintf("%s", list[i])) != 0;
  if (made) return copies;
  for (int i = 0; copies && i < count; i++) sqlite3_free(copies[i]);
  sqlite3_free(copies);
  return 0;
}

static struct tier_guard *make(sqlite3 *db, const struct tier_guard_terms *terms) {
  struct tier_guard *guard = sqlite3_malloc(sizeof *guard);
  if (!guard) return 0;
  *guard = (struct tier_guard){.db = db, .pad = terms->pad, .schema = terms->schema};
  guard->tier = sqlite3_mprintf("%s", terms->tier);
  guard->grant = terms->grant ? sqlite3_mprintf("%s", terms->grant) : 0;
  guard->tables = copy(terms->tables, terms->table_count);
  guard->outward = copy(terms->outward, terms->outward_count);
  guard->table_count = terms->table_count;
  if (guard->tier && guard->tables && guard->outward && (guard->grant || !terms->grant))
    return guard;
  tier_guard_free(guard);
  return 0;
}

/*
** Fails if another statement is running, because this statement would continue to return rows
** without the guard. Fails if a transaction is open, because a guarded connection cannot end it.
*/
static int check_idle(sqlite3 *db, struct error *error) {
  int busy = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s))
    busy += sqlite3_stmt_busy(s) != 0;
  if (busy > 1) /* one busy statement is the caller of dp_guard() */
    return error_set(error, "another statement of this connection is still running (finish or "
                            "reset it, and close blobs)");
  return sqlite3_get_autocommit(db) ||
         error_set(error, "this connection has an open transaction (commit it first: a guarded "
                          "connection cannot)");
}

/*
** Checks the tables and views of main or temp. Fails if one of them has the name of a virtual table
** that the guard allows, or if one in temp has the name of a public table.
*/
static int check_names(const struct tier_guard *guard, const char *schema, const char *master,
                       struct error *error) {
  sqlite3_stmt *row = 0;
  int is_main = strcmp(schema, "main") == 0;
  char *sql =
      sqlite3_mprintf("SELECT name FROM %s.%s WHERE type IN ('table', 'view')", schema, master);
  if (!sql) return error_set_memory(error);
  int rc = sqlite3_prepare_v2(guard->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (name && (is_in(tables, COUNT(tables), name) ||
                 (!is_main && is_in((const char *const *)guard->tables, guard->table_count, name))))
      error_set(error,
                "%s has a table or view with the name of a table that the guard allows (rename or "
                "drop '%s')",
                schema, name);
  }
  rc = rc == SQLITE_OK ? sqlite3_finalize(row) : rc;
  if (rc != SQLITE_OK) error_set(error, "cannot read the schema: %s", sqlite3_errmsg(guard->db));
  return !error_is_set(error);
}

static int has_authorizers(void) {
#ifdef SQLITE_CORE
  return 1;
#else
  return sqlite3_api->set_authorizer && sqlite3_api->trace_v2; /* null in an old SQLite */
#endif
}

struct tier_guard *tier_guard_set(sqlite3 *db, const struct tier_guard_terms *terms,
                                  struct error *error) {
  if (!has_authorizers()) {
    error_set(error, "this SQLite was built without authorizers or trace callbacks "
                     "(SQLITE_OMIT_AUTHORIZATION, SQLITE_OMIT_TRACE)");
    return 0;
  }
  if (!check_idle(db, error)) return 0;
  struct tier_guard *guard = make(db, terms);
  if (!guard) {
    error_set_memory(error);
    return 0;
  }
  int going = check_names(guard, "main", "sqlite_master", error) &&
              check_names(guard, "temp", "sqlite_temp_master", error);
  if (going && allowed_functions_read(&guard->functions, db) != SQLITE_OK)
    going = error_set(error, "cannot list the functions: %s", sqlite3_errmsg(db));
  if (going && !(guard->addresses = virtual_addresses(db, tables, COUNT(tables))))
    going = error_set_memory(error);
  if (going && sqlite3_set_authorizer(db, authorize, guard) != SQLITE_OK)
    going = error_set(error, "cannot set an authorizer: %s", sqlite3_errmsg(db));
  if (going && sqlite3_trace_v2(db, SQLITE_TRACE_STMT, check_started, guard) != SQLITE_OK) {
    sqlite3_set_authorizer(db, 0, 0);
    going = error_set(error, "cannot set a trace callback: %s", sqlite3_errmsg(db));
  }
  if (going) return guard;
  tier_guard_free(guard);
  return 0;
}

const char *tier_guard_tier(const struct tier_guard *guard) {
  return guard->tier;
}

const char *tier_guard_grant(const struct tier_guard *guard) {
  return guard->grant;
}

const char *const *tier_guard_outward(const struct tier_guard *guard) {
  return (const char *const *)guard->outward;
}

/* ---- running functions ----------------------------------------------------------------------- */

static int may_use(const struct tier_guard *guard, const char *name, enum use *use,
                   struct error *error) {
  *use = name ? TO_OWNER : TO_ALL;
  for (int i = 0; name && i < COUNT(of_ledger); i++)
    if (strcmp(of_ledger[i].name, name) == 0) *use = of_ledger[i].use;
  if (*use == TO_ALL || (*use == TO_ASK && guard->grant)) return 1;
  return error_set(error,
                   "this connection is guarded for tier '%s' and may not use it (allowed: SELECT "
                   "from public tables and from the tables of this extension, planning%s)",
                   guard->tier,
                   guard->grant ? ", and dp_release, dp_answer and dp_plan at this tier" : "");
}

int tier_guard_enter(struct tier_guard *guard, const char *name, struct error *error) {
  if (!guard) return 1;
  unsigned before = guard->asked, traced = guard->traced;
  sqlite3_stmt *probe = 0;
  guard->inside++;
  int rc =
      guard->is_replaced ? SQLITE_OK : sqlite3_prepare_v2(guard->db, "SELECT 1", -1, &probe, 0);
  if (probe) sqlite3_step(probe);
  sqlite3_finalize(probe);
  int may = rc == SQLITE_NOMEM ? error_set_memory(error) : 1;
  if (may && (guard->asked == before || guard->traced == traced)) {
    guard->is_replaced = 1;
    may = error_set(
        error, "another authorizer or trace callback has taken the place of the guard (close the "
               "connection; an application that sets its own cannot use dp_guard)");
  }
  enum use use = TO_ALL;
  if (may && may_use(guard, name, &use, error)) {
    if (guard->pad && use == TO_ASK) guard->entered = clock_milliseconds();
    return 1;
  }
  guard->inside--;
  return 0;
}

/* Waits until the time since the question began is a multiple of guard->pad milliseconds. */
static void wait(const struct tier_guard *guard) {
  int64_t passed = clock_milliseconds() - guard->entered;
  int64_t end = guard->entered + (passed / guard->pad + 1) * guard->pad, left;
  while ((left = end - clock_milliseconds()) > 0)
    clock_sleep((unsigned)(left < 100 ? left : 100) * 1000);
}

void tier_guard_leave(struct tier_guard *guard) {
  if (!guard) return;
  guard->inside--;
  if (guard->entered) wait(guard);
  guard->entered = 0;
}
