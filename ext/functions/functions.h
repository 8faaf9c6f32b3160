/*
** functions.h: the registration of the SQL functions that need the state of a connection.
*/
#ifndef DIFFUSE_FUNCTIONS_H
#define DIFFUSE_FUNCTIONS_H

#include <sqlite3ext.h>

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

/* Each of these functions registers the SQL functions or tables of one file. */
int planning_register(sqlite3 *db);
int tiers_register(sqlite3 *db, struct host *host);
int policies_register(sqlite3 *db, struct host *host);
int guards_register(sqlite3 *db, struct host *host);
int batches_register(sqlite3 *db, struct host *host);
int plans_register(sqlite3 *db, struct host *host);
int releases_register(sqlite3 *db, struct host *host);
int answers_register(sqlite3 *db, struct host *host);
int columns_register(sqlite3 *db, struct host *host);
int cross_tables_register(sqlite3 *db, struct host *host);
int appends_register(sqlite3 *db, struct host *host);
int spans_register(sqlite3 *db, struct host *host);
int aggregates_register(sqlite3 *db, struct host *host);
int partials_register(sqlite3 *db, struct host *host);
int reporting_register(sqlite3 *db, struct host *host);
int clippings_register(sqlite3 *db, struct host *host);
int tables_register(sqlite3 *db, struct host *host);

/* Registers all tables of a guarded connection, except for the public tables. */
int guest_tables_register(sqlite3 *db, struct host *host);

#endif
