/* internal.h: what the files of this room offer each other. */
#ifndef DIFFUSE_FUNCTIONS_INTERNAL_H
#define DIFFUSE_FUNCTIONS_INTERNAL_H

#include "functions/functions.h"
#include "ledger/ledger.h"
#include "query/query.h"
#include "release/release.h"

/* ---- JSON options of functions (host.c) ------------------------------------------------------ */

/* A member of a JSON object of options, and where its value goes. A null name ends a list. */
struct setting {
  const char *name;
  enum { SETTING_TEXT, SETTING_CHOICE, SETTING_NUMBER, SETTING_WHOLE, SETTING_ARRAY } type;
  /* A char * (the text, or the text of the array, which the caller frees), an int (the number of
  ** the choice, from 1) or a double. */
  void *place;
  const char *wanted;          /* what follows the name in an error about another value */
  const char *const *choices;  /* ends with null */
  const struct domain *domain; /* of a number */
};

/* Sets the places of the members that the object has. Returns 1, or 0 with the parser's error set.
** The caller frees the texts in both cases. */
int settings_read(const struct setting *settings, struct json *json, const char *object);

/* Does the same with an argument of a call, which may be missing or NULL. */
int call_settings(struct call *call, int index, const struct setting *settings);

/* Returns whether the tier exists and the audience of the ledger may see it. If not, sets the
** ledger's error. Call this function inside a transaction. */
int tier_is_known(struct ledger *ledger, const char *tier);

/* ---- making a release (releases.c) ----------------------------------------------------------- */

struct rows;
struct secret;

struct release_arguments {
  sqlite3_value *tier, *kind, *sql, *options; /* options may be null */
  /* Whether the options must name the release; NAME_IF_REPEATED: see asked_once(). */
  enum { NAME_NOT_NEEDED, NAME_NEEDED, NAME_IF_REPEATED } needs_name;
  int form; /* options that dp_release() does not have (OPTIONS_OF_…); 0: none */
};

/* Makes the release of a request that has been started (functions.h) and has the text of
** its question, or reads a stored release back. Returns 1, or 0 with an error. The caller must
** clear the publication and the request in both cases. */
int release_question(struct publication *publication, struct request *request, struct host *host);

/* Checks a request on a guarded connection, and puts the name of the release into the namespace of
** the connection's grant. Does nothing on other connections. */
int release_guarded(const struct host *host, struct request *request, int needs_name,
                    struct error *error);

/* Compiles the question of a request, request->sql, for dp_plan(), so that the request has its
** notice. Returns 1, or 0 with an error. */
int release_compile(struct request *request, struct host *host);

/* Both functions serve dp_batch(). release_check() reads the request, checks the request and
** compiles its query. release_run() runs the query of a charged release and finishes the
** release. */
int release_check(struct request *request, struct host *host,
                  const struct release_arguments *arguments);
int release_run(struct publication *publication, struct request *request, struct host *host);

/* ---- tables whose rows are published values (figures.c) -------------------------------------- */

/* The first columns. */
#define SHOWN_COLUMNS "key, value REAL, stddev REAL, low REAL, high REAL, display TEXT"
#define SHOWN_COUNT   6

/* Appends the first columns of a row. Without a key (null), the column `key` is the component, or
** NULL if this is below 0. Returns as row_text(). */
int value_row(struct row_list *rows, const char *key, int component,
              const struct ledger_value *value, const char *display);

/* Begins and ends the reading of a table. value_table_enter() refuses the reading while a release
** reads rows, and to guests who may not use the table. value_table_leave() hands on the error of
** the host's session if the reading has failed, and returns whether it succeeded. */
int value_table_enter(struct host *host, enum use use, struct error *error);
int value_table_leave(struct host *host, int is_filled, struct error *error);

/* Opens the publication of a release that is published at a tier, as far as the audience of the
** ledger may see it. Sets *clipping to what clipping did to it there (NaN without the option
** diagnose). Call published_find() inside a transaction. The publication has its session, and the
** caller clears it in both cases. Returns 1, or 0 with an error. */
int published_find(struct publication *publication, sqlite3_value *name, sqlite3_value *tier,
                   struct ledger_clipping *clipping);

/* ---- the array of dp_batch() and dp_plan() (batch.c) ----------------------------------------- */

/* Both functions accept the same array, and refuse the same ones. */

/* {"tier", "kind", "sql", "options", "diffuse": ["tier", ...]} */
struct batch_element {
  sqlite3_value *tier, *kind, *sql, *options; /* copies; null: not given */
  char **outer;  /* the tiers of "diffuse", then a null pointer; null: not given */
  int is_nested; /* the element has sql, options or diffuse, so all options are in "options" */
};

/* One release of the array. Its question has been compiled, unless only a plan has none. */
struct batch_item {
  struct batch_element element;
  struct request request;
};

struct batch_items {
  struct host *host;
  int plans; /* dp_plan(): an element may have no question */
  struct batch_item *list;
  int count;
};

/* Reads and checks all elements of the array, and compiles their questions without running them.
** Returns 1, or 0 with the error of the session set. The caller clears the items in both cases. */
int batch_items_read(struct batch_items *items, const char *array);
void batch_items_clear(struct batch_items *items);

/* Puts the number of the release, from 0, before the error message. Always returns 0. */
int batch_items_fail(const struct batch_items *items, int number);

/* ---- the guard of a connection (guard.c sets it, host.c asks it) ----------------------------- */

/* dp_guard() hands a connection to the members of one tier.
**
** What the members must not read is not there:
**   - `main` is replaced by a database in memory that contains only public tables
**     (public_tables.c). The connection has no other database, and cannot attach one.
**   - The extension reads the file on private connections, for the ledger and for questions.
**   - The tables of this extension show what the members may know (ledger/views.c), and its
**     functions check their caller when they run (guard_enter()).
**
** An authorizer is a second line. It refuses what a guarded connection has no use for, such as
** pragmas and functions of the application. An authorizer that the application sets later takes its
** place, and shows the members no more rows. */

/* The guard of a connection. Only guard.c changes it. */
struct guard {
  char *tier, *grant;            /* without a grant (null) the members may ask no question */
  char **outward;                /* the tiers at which answers are also published; null: none */
  int pad;                       /* answers return after `pad` ms, or 2, 4, 8, ... times as many */
  struct question_limits limits; /* the largest that a question may set, and the defaults */
  int64_t entered; /* the time at which the running question began, in ms; 0: none is running */
  struct collector *reader; /* the private connection that reads the rows of questions */
  struct allowed_functions functions;
};

void guard_free(struct guard *guard);

/* Returns whether the extension has a function of this name, other than an aggregate that makes a
** release. */
int host_has(const struct host *host, const char *name);

/* Call guard_enter() when a function of this extension starts to run, and when a statement starts
** to read a table. Returns 0 with an error if the members of the tier may not use it. If the result
** is 1, call guard_leave() when the function or the reading ends. A null guard admits
** everything. */
int guard_enter(struct guard *guard, enum use use, struct error *error);
void guard_leave(struct guard *guard);

/* ---- the public tables of a guarded connection (public_tables.c) ----------------------------- */

/* 0 in a build for tests, which shows that no secret depends on the authorizers of a guarded
** connection and of its private connection. */
#ifndef GUARD_AUTHORIZERS
#define GUARD_AUTHORIZERS 1
#endif

/* The name of the module in the text of the virtual tables. */
#define PUBLIC_TABLE_MODULE "dp_public_table"

/* Replaces the database `main` of a guarded connection by one that contains the public tables of
** the policy, as far as they exist in the file. `file` is a private connection to the file, which
** the function closes at the latest when the guarded connection is closed. Returns 1, or 0 with the
** error set and the connection as it was. */
int public_tables_install(sqlite3 *db, sqlite3 *file, struct ledger *ledger,
                          const struct ledger_policy *policy, struct error *error);

#endif
