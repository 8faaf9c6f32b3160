/*
** functions.h: what the SQL face shares: descriptors of scalar functions, their registration, and
** the one form of every error, "function: what is wrong (what to do)".
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

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

/*
** Argument `index` as a finite number in [low, high] (open ends are said with low_open, high_open);
** otherwise the call fails with one sentence that names the parameter, the value and the domain, and
** 0 is returned. Text is not a number here: a parameter that arrives as text is a mistake.
*/
struct domain {
  const char *parameter; /* as in the reference: "epsilon" */
  double low, high;
  int low_open, high_open; /* infinity as an end point is admitted iff closed */
};
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

/* One line per family: what each file of functions/ registers. */
int planning_register(sqlite3 *db);
int papers_register(sqlite3 *db);

#endif
