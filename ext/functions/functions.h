/* functions.h: the state of the extension on one connection of the host, and the registration of
** the SQL functions that need it. sql/reference.md describes what the functions do for their
** callers, with all options. */
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/sql_functions.h"
#include "query/query.h"
#include "release/release.h"

/* ---- the host -------------------------------------------------------------------------------- */

struct guard; /* internal.h */

#define MOST_LISTS 16

/* All functions and tables of the connection share this state. */
struct host {
  int references;    /* the number of functions, tables and running statements that use the host */
  int complete;      /* all functions and tables are registered */
  struct host *next; /* the next host in the list of all hosts of this process */
  struct collector collector; /* the connection that loaded the extension, and its dp_collect() */
  struct session session;     /* the first function that needs the ledger opens the ledger */
  int (*register_tables)(sqlite3 *db, struct host *host);
  struct guard *guard; /* set by dp_guard(); null: the connection is the owner's */
  struct pure pure;    /* the functions that need no ledger */
  const struct function *lists[MOST_LISTS]; /* of functions_register() */
  int list_count;
};

/* Makes a host with one reference. Returns null when out of memory. `register_tables` registers the
** tables that a guarded connection has, too. */
struct host *host_new(sqlite3 *db, int (*register_tables)(sqlite3 *db, struct host *host));

/* Returns whether all functions and tables are registered on a connection. */
int host_is_complete(sqlite3 *db);

/* Count references. When the last reference is released, host_release() closes the ledger. Both
** functions accept null. */
struct host *host_retain(struct host *host);
void host_release(struct host *host);

/* Calls host_release(). This function has the signature of an xDestroy callback. */
void host_release_pointer(void *host);

/* ---- the functions and tables ---------------------------------------------------------------- */

/* The flags of functions that read or write the ledger. A view or trigger cannot call such a
** function, because somebody else may have written the view or trigger to spend the owner's
** budget. */
#define PRIVATE_FUNCTION (SQLITE_UTF8 | SQLITE_DIRECTONLY)

/* What the members of a tier may do with a function or table on a guarded connection (guard.c). */
enum use { TO_OWNER, TO_ASK, TO_ALL };

/* What a function needs before it runs. */
enum {
  LEDGER_OPEN = 1, /* the ledger is open */
  NOT_NESTED = 2,  /* the question of a release does not call it */
};

#define CALL_TEXTS 3

/* A call of a function that needs the ledger. */
struct call {
  sqlite3_context *context;
  struct host *host;
  struct ledger *ledger;
  struct error *error; /* of the host's session, and therefore of the ledger and its JSON parser */
  int count;           /* of arguments */
  sqlite3_value **values;
  const char *texts[CALL_TEXTS]; /* the first arguments, if the function names them; null: none */
};

/* The descriptor of such a function. A function without a name ends a list. */
struct function {
  const char *name;
  int least, most; /* the numbers of arguments, or -1 twice: any number */
  enum use use;
  int needs; /* the flags above */
  /* The names of the first arguments, which must be texts that are not empty if they are given. */
  const char *texts[CALL_TEXTS];
  /* Sets the result, which is the first argument otherwise. Returns 1, or 0 with call->error. */
  int (*run)(struct call *call);
};

/* Registers a list of functions for a host. Returns an SQLite result code. */
int functions_register(sqlite3 *db, struct host *host, const struct function *functions);

/* Sets a text, which it takes over, as the result. Returns 1, or 0 with the error set if the text
** is null: out of memory. */
int call_text(struct call *call, char *text);

struct answer;

/* Sets the answer of a publication as the result of the running function. */
void result_answer(sqlite3_context *context, const struct answer *answer);

/* The functions and tables of the files. */
extern const struct function ledger_functions[], policy_functions[], guard_functions[],
    batch_functions[], plan_functions[], release_functions[], partial_functions[],
    reporting_functions[], figure_functions[];
extern const struct scalar version_function;
extern const struct row_table answer_table, column_table, cross_table_table, part_table, span_table,
    policy_plan_table;

/* Each of these functions registers what else a file has. */
int rates_register(struct pure *pure);

int releases_register(sqlite3 *db, struct host *host);

int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);

/* The tables of the ledger. */
int ledger_tables_register(sqlite3 *db, struct host *host);

#endif
