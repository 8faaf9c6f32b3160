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
** An error is a sentence, no error a null pointer. error_message() never returns null: where there
** is no memory for the text it gives one that stands for that, so that a failure cannot pass as
** success.
*/
char *error_message(const char *format, ...);
void error_message_free(char *text);

/* The same for functions that are not scalars: "name: message", which is taken over and freed. */
void fail_call(sqlite3_context *context, const char *name, char *message);

/* The set of numbers that a parameter may be. */
struct domain {
  const char *parameter; /* as in the reference: "epsilon" */
  double low, high;
  int low_open, high_open; /* infinity as an end point is admitted iff closed */
};

/*
** A value as a number of the domain: returns null and sets *number, or returns one sentence that
** names the parameter, its type and the domain. Text is not a number here: a parameter that
** arrives as text is a mistake.
*/
char *domain_check(sqlite3_value *value, const struct domain *domain, double *number);

int domain_holds(const struct domain *domain, double number);

/* The same, failing the scalar that runs: 1 for success, 0 after a failure. */
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

/* A text argument that is not empty, or null after failing the scalar that runs. */
const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter);

/* One line per file: what it registers. */
int planning_register(sqlite3 *db);
int papers_register(sqlite3 *db);
int tiers_register(sqlite3 *db, struct host *host);
int policies_register(sqlite3 *db, struct host *host);
int plans_register(sqlite3 *db, struct host *host);
int releases_register(sqlite3 *db, struct host *host);
int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);
int models_register(sqlite3 *db, struct host *host);
int tables_register(sqlite3 *db, struct host *host);

/* The first word of an SQL text, in capitals, behind white space and comments. */
void first_word(const char *sql, char word[8]);

/* Whether a name occurs in an SQL text, in any case. */
int has_word(const char *name, const char *sql);

#endif
