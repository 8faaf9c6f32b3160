/*
** functions.h: what the SQL face shares: descriptors of scalar functions, their registration, and
** the one form of every error, "function: what is wrong (what to do)".
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/domain.h"
#include "base/error.h"

struct host; /* functions/host.h: what the extension keeps for one connection */

/* A scalar function. `call` finds its descriptor with function_of(). */
struct scalar {
  const char *name;
  int min_arguments;
  int max_arguments;
  int flags; /* PURE or PRIVATE_FUNCTION */
  void (*call)(sqlite3_context *, int, sqlite3_value **);
};

/* Functions of public parameters only: no ledger, no data, no charge. */
#define PURE (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

/* Functions that read or write the ledger: never from a schema (a view or trigger that somebody
** else planted must not spend the owner's budget). */
#define PRIVATE_FUNCTION (SQLITE_UTF8 | SQLITE_DIRECTONLY)

/*
** Registers `count` scalars for this host (null for pure functions). Returns an SQLite code.
*/
int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count);

/* The descriptor and the host of the scalar that is running. */
const struct scalar *function_of(sqlite3_context *context);
struct host *host_of(sqlite3_context *context);

/* Fails the call: "name: message". The format is sqlite3_mprintf's. */
void function_error(sqlite3_context *context, const char *format, ...);

/* Fails the call of any function with this error, which is cleared: "name: message". */
void fail_call(sqlite3_context *context, const char *name, struct error *error);

/* The same, failing the scalar that runs: 1 for success, 0 after a failure. */
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

/* A text argument that is not empty, or null after failing the scalar that runs. */
const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter);

/* The answer of a publication as the result of the function that runs. */
struct answer;
void result_answer(sqlite3_context *context, const struct answer *answer);

/* One line per file: what it registers. */
int planning_register(sqlite3 *db);
int papers_register(sqlite3 *db);
int tiers_register(sqlite3 *db, struct host *host);
int policies_register(sqlite3 *db, struct host *host);
int plans_register(sqlite3 *db, struct host *host);
int releases_register(sqlite3 *db, struct host *host);
int answers_register(sqlite3 *db, struct host *host);
int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);
int models_register(sqlite3 *db, struct host *host);
int tables_register(sqlite3 *db, struct host *host);

#endif
