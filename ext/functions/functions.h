/*
** functions.h: code that all SQL functions share: descriptors of scalar functions, their
** registration, and the common form of errors, "function: what is wrong (what to do)".
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/domain.h"
#include "base/error.h"

struct host; /* functions/host.h: the state of the extension on one connection */

/* A scalar function. `call` gets its descriptor from function_of(). */
struct scalar {
  const char *name;
  int min_arguments;
  int max_arguments;
  int flags; /* PURE or PRIVATE_FUNCTION */
  void (*call)(sqlite3_context *, int, sqlite3_value **);
};

/* Flags of functions that compute from public parameters only: no ledger, no data, no charge. */
#define PURE (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

/*
** Flags of functions that read or write the ledger. Schemas may not use them: a view or trigger
** that someone else planted must not spend the owner's budget.
*/
#define PRIVATE_FUNCTION (SQLITE_UTF8 | SQLITE_DIRECTONLY)

/*
** Registers `count` scalars for this host (null for pure functions). Returns an SQLite code.
*/
int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count);

/* The descriptor and the host of the scalar that is running. */
const struct scalar *function_of(sqlite3_context *context);
struct host *host_of(sqlite3_context *context);

/* Fails the call with "name: message". The format is that of sqlite3_mprintf(). */
void function_error(sqlite3_context *context, const char *format, ...);

/* Fails the call of a function with this error, as "name: message", and clears the error. */
void fail_call(sqlite3_context *context, const char *name, struct error *error);

/* Reads a number in a domain and returns 1, or fails the running scalar and returns 0. */
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

/*
** Returns a text argument that is not empty. Otherwise fails the running scalar and returns null.
*/
const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter);

/* Sets the answer of a publication as the result of the running function. */
struct answer;
void result_answer(sqlite3_context *context, const struct answer *answer);

/* The registration functions, one for each file. */
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
