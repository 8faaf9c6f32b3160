/*
** scalar.h: numeric arguments and their domains, the descriptors of scalar SQL functions, and the
** common form of error messages, "function: what is wrong (what to do)".
*/
#ifndef DIFFUSE_BASE_SCALAR_H
#define DIFFUSE_BASE_SCALAR_H

#include <sqlite3ext.h>

#include "base/error.h"

struct domain {
  const char *parameter; /* the parameter's name in the documentation, such as "epsilon" */
  double low, high;
  /*
  ** low_open is 1 if the domain excludes `low`, and 0 if the domain includes `low`, even an
  ** infinite `low`. high_open says the same about `high`.
  */
  int low_open, high_open;
};

/*
** Sets *number to the value if the value is a number in the domain. Otherwise the error names the
** parameter, its domain and, if the type is wrong, the type of the value. A text that
** wholly is a number counts as one, because some hosts bind all values as texts.
*/
int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error);

int domain_holds(const struct domain *domain, double number);

/* ---- functions ------------------------------------------------------------------------------- */

/*
** The descriptor of a scalar function. The user data of every scalar begins with its descriptor, so
** that `call` can get the descriptor from function_of(). The user data of an aggregate that calls
** the functions below begins with its name.
*/
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

/* Registers `count` scalars that need only their arguments. Returns an SQLite result code. */
int pure_register(sqlite3 *db, const struct scalar *table, int count);

/* Returns the descriptor of the scalar that is running. */
const struct scalar *function_of(sqlite3_context *context);

/* Fails the call with "name: message". The format is that of sqlite3_mprintf(). Returns 0. */
int function_error(sqlite3_context *context, const char *format, ...);

/* Fails the call of a function with the message "name: error", and clears the error. */
void fail_call(sqlite3_context *context, const char *name, struct error *error);

/*
** Ends the call of the running scalar: with a text, which it frees, or with a value. If an error is
** set, or there is no text, or the value is not to be given, fails the call and clears the error.
*/
void end_with_text(sqlite3_context *context, char *text, struct error *error);
void end_with_value(sqlite3_context *context, int is_given, sqlite3_value *value,
                    struct error *error);

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

#endif
