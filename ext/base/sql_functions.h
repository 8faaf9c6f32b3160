/* sql_functions.h: the two forms of the SQL functions: scalars with checked arguments, and
** read-only eponymous virtual tables whose rows a C function makes. The arguments of such a table
** are hidden columns, so that it is used like a function: dp_table('census', 'public').
**
**   V1  All rows are made when SQLite begins to read the table. A later LIMIT, ROLLBACK or error of
**       the outer statement changes nothing.
**   V2  The first `least` arguments must be given, otherwise the table reports an error.
**   V3  The columns of a table with `is_searched` are its arguments: SQLite gives the values that
**       they must equal, if it knows them, and compares again. Comparisons under another collation
**       than BINARY and those of IN are not given.
**   V4  A rowid is a hash of the row and of the arguments, and the number of the row among equal
**       rows. So it is the same however SQLite finds the row: to answer OR, SQLite reads a table
**       several times, and knows by the rowid which rows it has had.
**   V5  A statement reads or compares an argument only of calls that have it. Otherwise SQLite
**       could answer OR by one call without this argument, and lose the rows of those with it. */
#ifndef DIFFUSE_BASE_SQL_FUNCTIONS_H
#define DIFFUSE_BASE_SQL_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/error.h"

#define ROW_MOST_ARGUMENTS 31
#define IN_TOLD_SINCE      3038000 /* the version of SQLite that brought sqlite3_vtab_in() */

/* ---- tables ---------------------------------------------------------------------------------- */

/* The rows of one reading: cells in the order of the rows and of the columns, without the
** arguments. These functions append a cell. They return 1, or 0 with the error of the reading set.
** They copy a text. row_value() takes the result of sqlite3_value_dup(), which it frees. */
struct row_list;
int row_null(struct row_list *rows);
int row_integer(struct row_list *rows, sqlite3_int64 integer);
int row_real(struct row_list *rows, double real);      /* NaN becomes NULL */
int row_text(struct row_list *rows, const char *text); /* a null pointer becomes NULL */
int row_value(struct row_list *rows, sqlite3_value *value);

struct row_table {
  const char *name;
  const char *columns; /* declares the columns */
  int count;           /* the number of columns that are not arguments */
  int first;           /* the index of the first argument among all columns, of 63 at most */
  int least, most;     /* the numbers of arguments (V2), below ROW_MOST_ARGUMENTS if not searched */
  int is_searched;     /* the columns are the arguments (V3) */
  int option;          /* 0, SQLITE_VTAB_DIRECTONLY or SQLITE_VTAB_INNOCUOUS */
  int estimate;        /* the number of rows that the planner assumes */
  double cost;         /* and what reading them costs */
  /* Makes the rows. arguments[i] is null if SQLite does not give argument i. Returns 1, or 0 with
  ** the error set. */
  int (*fill)(struct row_list *rows, void *context, sqlite3_value *const *arguments,
              struct error *error);
};

/* Registers the methods of a module. `release` is called with the context as SQLite would call it,
** also after a failure. SQLite itself would call it twice after a call of this statement ran out of
** memory before: it then registers the module, but reports a failure. */
int module_register(sqlite3 *db, const char *name, const sqlite3_module *called, void *context,
                    void (*release)(void *context));

/* Registers a table, which is copied. `release` (or null) is called with the context when nobody
** needs it any more, also after a failure. Returns an SQLite result code. */
int row_table_register(sqlite3 *db, const struct row_table *table, void *context,
                       void (*release)(void *));

/* The xBestIndex of a table whose arguments are hidden columns from `first` on (V2). Sets idxNum to
** the set of the arguments that are given. xFilter gets them in the order of the arguments. */
int row_table_plan(sqlite3_index_info *info, int first, int most);

/* ---- arguments ------------------------------------------------------------------------------- */

struct domain {
  const char *parameter; /* the parameter's name in the documentation, such as "epsilon" */
  double low, high;
  int low_open, high_open; /* 0: the domain includes this end, even if it is infinite */
};

/* Sets *number to the value if it is a number in the domain, or a text that wholly is one, because
** some hosts bind all values as texts. Otherwise the error names the parameter, its domain and a
** wrong type. */
int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error);

int domain_holds(const struct domain *domain, double number);

/* Returns the text of an argument that must be a text and not empty. Otherwise returns null with
** the error set. */
const char *text_check(sqlite3_value *value, const char *parameter, struct error *error);

/* ---- scalars --------------------------------------------------------------------------------- */

/* The flags of functions of public parameters alone, which use no ledger and no data. */
#define PURE (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

/* The descriptor of such a scalar, with which its user data begins, for function_of(). The user
** data of an aggregate that calls the functions below begins with its name. */
struct scalar {
  const char *name;
  int min_arguments;
  int max_arguments;
  void (*call)(sqlite3_context *, int, sqlite3_value **);
};

#define MOST_PURE 80

/* The functions of public parameters alone that a connection has: their names, for the guard. */
struct pure {
  sqlite3 *db;
  const char *names[MOST_PURE];
  int count;
};

/* Registers a scalar. Returns an SQLite result code. */
int pure_register(struct pure *pure, const struct scalar *scalar);

const struct scalar *function_of(sqlite3_context *context);

/* Fails the call with "name: what is wrong (what to do)". sqlite3_mprintf() formats. Returns 0. */
int function_error(sqlite3_context *context, const char *format, ...);

/* Fails the call with "name: error", and clears the error. */
void fail_call(sqlite3_context *context, const char *name, struct error *error);

/* Reads a number of the domain. Otherwise fails the running scalar and returns 0. */
int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number);

#endif
