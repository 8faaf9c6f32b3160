/*
** tier_guard.h: the guard of a connection that dp_guard() has handed to the members of one tier.
**
** What the members must not read is not there:
**   - `main` is replaced by a database in memory that contains only public tables
**     (public_tables.h). The connection has no other database, and cannot attach one.
**   - The extension reads the file on private connections, for the ledger and for questions.
**   - The tables of this extension show what the members may know (ledger/audience.c), and its
**     functions check their caller when they run (tier_guard_enter()).
**
** An authorizer is a second line. It refuses what a guarded connection has no use for, such as
** pragmas and functions of the application. An authorizer that the application sets later takes its
** place, and shows the members no more rows.
*/
#ifndef DIFFUSE_FUNCTIONS_TIER_GUARD_H
#define DIFFUSE_FUNCTIONS_TIER_GUARD_H

#include "ledger/policy.h"
#include "query/allowed_functions.h"
#include "query/collector.h"
#include "query/limits.h"

/* The guard of a connection. Only tier_guard.c changes it. */
struct tier_guard {
  char *tier, *grant;            /* without a grant (null) the members may ask no question */
  char **outward;                /* the tiers at which answers are also published; null: none */
  int pad;                       /* answers return after `pad` ms, or 2, 4, 8, ... times as many */
  struct question_limits limits; /* the largest that a question may set, and the defaults */
  int64_t entered; /* the time at which the running question began, in ms; 0: none is running */
  struct collector *reader; /* the private connection that reads the rows of questions */
  struct allowed_functions functions;
};

/* The terms of a guard. The texts and the policy belong to the caller. */
struct tier_guard_terms {
  const char *tier, *grant;
  char **outward; /* a guard that is set takes them over (json_list()) */
  int pad;
  struct question_limits limits;
  const struct ledger_policy *policy;
};

/* The modules of virtual tables that a guarded connection keeps. A null pointer is at the end. */
extern const char *const tier_guard_modules[];

/*
** Sets the guard of a connection, until the connection is closed. Returns the guard, or null with
** the error set and the connection as it was. The connection has no virtual tables then except for
** the public tables; the caller registers those that the members may read. The caller frees the
** guard when the connection is closed.
*/
struct tier_guard *tier_guard_set(sqlite3 *db, struct ledger *ledger,
                                  const struct tier_guard_terms *terms, struct error *error);
void tier_guard_free(struct tier_guard *guard);

/*
** Call tier_guard_enter() with the name of a function of this extension (or of dp_answer) when the
** function starts to run, and with a null name when a statement starts to read a table of the
** ledger. Returns 0 with an error if the members of the tier may not use the function. If the
** result is 1, call tier_guard_leave() when the function or the reading ends. A null guard admits
** everything.
*/
int tier_guard_enter(struct tier_guard *guard, const char *name, struct error *error);
void tier_guard_leave(struct tier_guard *guard);

#endif
