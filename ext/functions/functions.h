/*
** functions.h: the registration of the SQL functions that need the state of a connection.
** sql/reference.md describes what the functions do for their callers, with all options.
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

#include "base/row_table.h"
#include "base/scalar.h"

struct host; /* functions/host.h: the state of the extension on one connection */

/*
** The flags of functions that read or write the ledger. A view or trigger cannot call such a
** function, because somebody else may have written the view or trigger to spend the owner's budget.
*/
#define PRIVATE_FUNCTION (SQLITE_UTF8 | SQLITE_DIRECTONLY)

/* Registers `count` scalars for a host. Returns an SQLite result code. */
int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count);

/* Returns the host of the scalar that is running. */
struct host *host_of(sqlite3_context *context);

struct answer;

/* Sets the answer of a publication as the result of the running function. */
void result_answer(sqlite3_context *context, const struct answer *answer);

/* The scalars and tables of the files. A scalar without a name ends a list. */
extern const struct scalar tier_functions[], policy_functions[], guard_functions[],
    batch_functions[], plan_functions[], release_functions[], append_functions[],
    partial_functions[], reporting_functions[], clipping_functions[], answer_functions[],
    version_function;
extern const struct row_table answer_table, column_table, cross_table_table, part_table, span_table,
    policy_plan_table;

/* Each of these functions registers what else a file has. */
int planning_register(sqlite3 *db);

int releases_register(sqlite3 *db, struct host *host);

int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);

int tables_register(sqlite3 *db, struct host *host);

/* Registers all tables of a guarded connection, except for the public tables. */
int guest_tables_register(sqlite3 *db, struct host *host);

#endif
