/*
** tier_guard.h: the guard of a connection that dp_guard() has handed to the members of one tier.
**
** The guard is an authorizer of SQLite with a list of what is allowed; everything else is refused
** while SQLite compiles a statement. Functions of this extension that need the ledger are checked
** again when they run, so that their errors can say what is allowed.
**
** Three things are outside the reach of an authorizer:
**   - The SQL of the extension itself on the same connection, which reads protected tables for a
**     question. tier_guard_enter() admits it until tier_guard_leave(). In between, SQLite runs one
**     of our functions inside sqlite3_step(), which holds the mutex of the connection. The SQL of
**     the caller is then compiled on other connections only: a question on the evaluator's, which
**     has no access to the file (query/evaluator.c), and options by the JSON reader.
**   - An authorizer that the host sets later takes the place of this one, and SQLite cannot tell.
**     Each call of tier_guard_enter() therefore compiles a statement that the guard must have seen.
**   - The host's own calls (sqlite3_blob_open, sqlite3_backup_init, sqlite3_serialize).
*/
#ifndef DIFFUSE_FUNCTIONS_TIER_GUARD_H
#define DIFFUSE_FUNCTIONS_TIER_GUARD_H

#include <sqlite3ext.h>

#include "base/error.h"

struct tier_guard;

/* The terms of a guard. The texts belong to the caller. */
struct tier_guard_terms {
  const char *tier;
  const char *grant;          /* null: its members ask nothing */
  const char *const *outward; /* the tiers at which answers are also published */
  int outward_count;
  int pad;                   /* milliseconds after which answers return, or a multiple of them */
  const char *const *tables; /* the public tables */
  int table_count;
};

/*
** Sets the guard of a connection. Returns null with an error if the connection cannot be guarded.
** The guard stays until the connection is closed; the caller frees it then.
*/
struct tier_guard *tier_guard_set(sqlite3 *db, const struct tier_guard_terms *terms,
                                  struct error *error);
void tier_guard_free(struct tier_guard *guard);

const char *tier_guard_tier(const struct tier_guard *guard);
const char *tier_guard_grant(const struct tier_guard *guard); /* null: none */

/* The tiers at which answers are also published; a null pointer ends the list. */
const char *const *tier_guard_outward(const struct tier_guard *guard);

/*
** Call it when a function of this extension (or dp_answer) starts to run, with its name, or when a
** table of the ledger is read, with a null name. Returns 0 with an error if the members of the tier
** may not use it, or if the guard was replaced. After 1, call tier_guard_leave() at the end. A null
** guard admits everything.
*/
int tier_guard_enter(struct tier_guard *guard, const char *name, struct error *error);
void tier_guard_leave(struct tier_guard *guard);

#endif
