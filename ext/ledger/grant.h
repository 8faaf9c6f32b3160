/*
** grant.h: grants. A grant is a part of a budget that the owner has set aside for questions of
** other people.
*/
#ifndef DIFFUSE_LEDGER_GRANT_H
#define DIFFUSE_LEDGER_GRANT_H

#include "ledger/ledger.h"

/* The largest pad_ms of a grant, in milliseconds (sql/ledger.sql). */
#define GRANT_MOST_PAD 60000

/*
** Creates a grant in a transaction of its own. Each answer of the grant is also published at the
** `count` tiers in `outward`. The function reserves a share of the remaining budget at the grant's
** tier, at every tier inside this tier, and at outer tiers up to the outermost tier in `outward`.
** If the grant has a number of questions, the function sets its share.
** Does nothing if a grant with this name and the same parameters exists. Fails if the parameters
** differ.
*/
int ledger_grant_create(struct ledger *ledger, struct ledger_grant *grant,
                        const char *const *outward, int count);

/*
** Finds a grant. Call this function inside a transaction. Returns 1 if the grant exists. Otherwise
** sets an error and returns 0. The caller calls ledger_grant_clear() in both cases.
*/
int ledger_grant_find(struct ledger *ledger, const char *name, struct ledger_grant *grant);
void ledger_grant_clear(struct ledger_grant *grant);

/* Returns whether a name is '<grant>/<name>' and this grant exists. */
int grant_owns_name(struct ledger *ledger, const char *name);

/* Finds a discrepancy between grants, charges and budgets. */
int grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count);

#endif
