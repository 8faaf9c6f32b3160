/* functions.h: what this room offers: the state of the extension on one connection of the host, the
** registration of the SQL functions that need it, and the options of a release. sql/reference.md
** describes what the functions do for their callers, with all options. */
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>
#include <stddef.h>

#include "base/json.h"
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

/* ---- arguments and options (options.c) ------------------------------------------------------- */

/* They become the parameters of a release. All functions return 1, or 0 with the error in the JSON
** parser (base/json.h). */

/* The sets of options that a caller may use. */
enum {
  OPTIONS_OF_AGGREGATE = 1,
  OPTIONS_OF_RELEASE = 2,
  OPTIONS_OF_PLAN = 4,
  OPTIONS_OF_ELEMENT = 8,
  OPTIONS_OF_PARTIAL = 16, /* dp_partial(): the options that shape the sums */
  OPTIONS_OF_STATE = 32,   /* the same options, in the form that dp_partial() writes into a state */
  OPTIONS_OF_MERGE = 64,   /* the options of dp_merge(), which complete those of the state */
  OPTIONS_OF_BATCH = 128,  /* wishes and guesses of dp_plan() that dp_batch() also accepts */
  OPTIONS_OF_PUBLISHING =
      OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | OPTIONS_OF_MERGE
};

enum option_type {
  TEXT,
  MECHANISM,
  WORD,
  NUMBER,
  WHOLE_NUMBER,
  FLAG,
  PROTECTS,
  QUANTILES,
  KEYS,
  WAYS,    /* the tables of cross tables */
  PERIODS, /* the labels of a series */
  KEY,     /* one key, as a text */
  READ,    /* the function `read` of the option reads it */
  SHARD_NAME,
  SHARD_NAMES, /* the shards of a merge: their number or their names */
  QUERY,       /* the text of a question */
  TABLES,      /* the tables that a question reads, as a JSON object */
  READ_ALREADY
};

/* An option of a room beside the core. It sets a member of the struct `details`. The last arguments
** are the option's domain. */
#define OWN_OPTION(type, details, member, is_argument, ...)                                        \
  { {__VA_ARGS__}, type, OWN(details, member), OPTIONS_OF_PUBLISHING, P_OWN, is_argument, 0 }

struct option {
  struct domain domain; /* the name of the option and, for a number, the allowed range */
  enum option_type type;
  size_t offset; /* the member that the option sets: of struct request, or OWN() */
  int forms;     /* the forms above that accept the option */
  /* The parameter, or the group of parameters, to which the option belongs: centre, theta, rho and
  ** t, for example, belong to P_RADIUS. Kinds without it refuse the option. PARAMETERS: the option
  ** is for all kinds. */
  enum parameter parameter;
  int is_argument; /* the parameter may be an argument of the call */
  int (*read)(struct request *request, struct json *json, sqlite3_value *value,
              struct error *error);
};

/* The member of request.details that an option of a kind of its own sets (P_OWN). */
#define OWN(type, member) offsetof(type, member)

/* Fills a request from the tier and from the argument that holds a name or options. `tier` is null
** if there is no tier. `name_or_options` is a null pointer or an SQL NULL if there is neither a
** name nor options. The caller must clear the request, even after a failure. Before
** request_finish(), the caller must set the parameters that are arguments. */
int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form);

/* Sets the options from the text of a JSON object. */
int request_read(struct request *request, struct json *json, const char *text, int form);

/* Returns the name of a parameter that may be an argument. */
const char *request_parameter(const struct aggregate *aggregate, enum parameter parameter);

/* Sets a parameter from an argument. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value);

/* Returns the parameters that shape the sums as JSON. Call request_finish_shape() first. The form
** OPTIONS_OF_STATE keeps every bit of a number, so that a state can be read back. The form
** OPTIONS_OF_PARTIAL is for people. The caller frees the text. Returns null when out of memory. */
char *request_parameters(const struct request *request, int form);

#endif
