/*
** tier_guard.h: the guard of a connection that dp_guard() has handed to the members of one tier.
**
** The guard is an SQLite authorizer with a list of what is allowed. It refuses everything else when
** SQLite compiles a statement. It lets statements call the functions of this extension that need
** the ledger, and checks these functions when they run, so that its error can say what is allowed.
**
** An authorizer alone is not enough for four reasons:
**   - SQLite does not ask an authorizer about the columns that USING and NATURAL JOIN compare. A
**     trace callback therefore reads the program of each statement when the statement starts. It
**     interrupts the statement if the program opens a table that is not allowed.
**   - The extension runs SQL of its own on the same connection, and this SQL reads protected tables
**     to answer a question. Between tier_guard_enter() and tier_guard_leave(), the guard therefore
**     admits every statement. The caller cannot compile a statement on the connection during this
**     time, because a function of this extension is running inside sqlite3_step(), which holds the
**     mutex of the connection. The extension compiles the text of a question only on the
**     evaluator's connection, which has no access to the file (query/evaluator.c). For the trace
**     callback, it compiles EXPLAIN of statements to which the authorizer has already agreed.
**   - If the host later sets another authorizer or trace callback, SQLite removes the guard's
**     authorizer or callback and does not tell the guard. Each call of tier_guard_enter() therefore
**     runs a statement, and checks that SQLite has asked the authorizer and called the trace
**     callback.
**   - The host can call functions that do not ask the authorizer, such as sqlite3_blob_open(),
**     sqlite3_backup_init() and sqlite3_serialize(). The guard cannot prevent this.
*/
#ifndef DIFFUSE_FUNCTIONS_TIER_GUARD_H
#define DIFFUSE_FUNCTIONS_TIER_GUARD_H

#include <sqlite3ext.h>

#include "base/error.h"

struct tier_guard;

/* The terms of a guard. The texts belong to the caller. */
struct tier_guard_terms {
  const char *tier;
  const char *grant; /* the grant that pays for questions; null: the members may ask no question */
  const char *const *outward; /* the tiers at which answers are also published */
  int outward_count;
  int pad; /* answers return after a multiple of `pad` milliseconds; 0: as soon as they are made */
  const char *const *tables; /* the public tables */
  int table_count;
  int schema; /* 1: the members may read the database's schema, which contains no data of rows */
};

/*
** Sets the guard of a connection. Returns null with an error if the connection cannot be guarded.
** The guard stays in force until the connection is closed. The caller frees the guard then.
*/
struct tier_guard *tier_guard_set(sqlite3 *db, const struct tier_guard_terms *terms,
                                  struct error *error);
void tier_guard_free(struct tier_guard *guard);

const char *tier_guard_tier(const struct tier_guard *guard);
const char *tier_guard_grant(const struct tier_guard *guard); /* null: there is no grant */

/* The tiers at which answers are also published; a null pointer ends the list. */
const char *const *tier_guard_outward(const struct tier_guard *guard);

/*
** Call tier_guard_enter() with the name of a function of this extension (or of dp_answer) when the
** function starts to run, and with a null name when a statement starts to read a table of the
** ledger. Returns 0 with an error if the members of the tier may not use the function, or if the
** host has replaced the authorizer or the trace callback. If the result is 1, call
** tier_guard_leave() when the function or the reading ends. A null guard admits everything.
*/
int tier_guard_enter(struct tier_guard *guard, const char *name, struct error *error);
void tier_guard_leave(struct tier_guard *guard);

#endif
