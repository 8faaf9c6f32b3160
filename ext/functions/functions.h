/*
** functions.h: code that all SQL functions share: the descriptors and the registration of scalar
** functions, and the common form of error messages, "function: what is wrong (what to do)".
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/domain.h"
#include "base/error.h"

struct host; /* functions/host.h: the state of the extension on one connection */

/* The descriptor of a scalar function. `call` can get the descriptor from function_of(). */
struct scalar {
  const char *name;
  int min_arguments;
  int max_arguments;
  int flags; /* PURE or PRIVATE_FUNCTION */
  void (*call)(sqlite3_context *, int, sqlite3_value **);
};

/*
** The flags of functions that compute from public parameters alone and use no ledger and no data.
*/
#define PURE (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

/*
** The flags of functions that read or write the ledger. A view or trigger cannot call such a
** function, because somebody else may have written the view or trigger to spend the owner's budget.
*/
#define PRIVATE_FUNCTION (SQLITE_UTF8 | SQLITE_DIRECTONLY)

/*
** Registers `count` scalars for a host. If the host is null, no guard checks the calls. Returns an
** SQLite result code.
*/
int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count);

/* Return the descriptor and the host of the scalar that is running. */
const struct scalar *function_of(sqlite3_context *context);
struct host *host_of(sqlite3_context *context);

/* Fails the call with "name: message". The format is that of sqlite3_mprintf(). */
void function_error(sqlite3_context *context, const char *format, ...);

/* Fails the call of a function with the message "name: error", and clears the error. */
void fail_call(sqlite3_context *context, const char *name, struct error *error);

/*
** Reads a number and returns 1. If the value is not a number in the domain, fails the running
** scalar and returns 0.
*/
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

/*
** Returns the text of an argument. If the argument is not a text or is empty, fails the running
** scalar and returns null.
*/
const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter);

struct answer;

/* Sets the answer of a publication as the result of the running function. */
void result_answer(sqlite3_context *context, const struct answer *answer);

/* Each of these functions registers the SQL functions or tables of one file. */
int planning_register(sqlite3 *db);
int papers_register(sqlite3 *db);
int tiers_register(sqlite3 *db, struct host *host);
int policies_register(sqlite3 *db, struct host *host);
int guards_register(sqlite3 *db, struct host *host);
int batches_register(sqlite3 *db, struct host *host);
int plans_register(sqlite3 *db, struct host *host);
int releases_register(sqlite3 *db, struct host *host);
int answers_register(sqlite3 *db, struct host *host);
int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);
int models_register(sqlite3 *db, struct host *host);
int reporting_register(sqlite3 *db, struct host *host);
int clippings_register(sqlite3 *db, struct host *host);
int tables_register(sqlite3 *db, struct host *host);

#endif
