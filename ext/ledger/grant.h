/*
** grant.h: grants, the parts of budgets that the owner has set aside for questions of others.
*/
#ifndef DIFFUSE_LEDGER_GRANT_H
#define DIFFUSE_LEDGER_GRANT_H

#include "ledger/ledger.h"

/* A grant as stored. The struct owns its texts. */
struct ledger_grant {
  GRANT_COLUMNS(COLUMN_MEMBER)
};

/* The longest padded time of an answer, in milliseconds. */
#define GRANT_MOST_PAD 60000

/*
** Creates a grant in a transaction of its own: reserves its share of what is left of its tier's
** budget, at the tier, at every tier inside it, and out to the outermost of the `count` tiers in
** `outward`, to which each answer is also published. Does nothing if the same grant exists.
*/
int ledger_grant_create(struct ledger *ledger, const struct ledger_grant *grant,
                        const char *const *outward, int count);

/*
** Finds a grant inside a transaction. Returns 1 if found; 0, with an error, if not. Clear it in
** either case.
*/
int ledger_grant_find(struct ledger *ledger, const char *name, struct ledger_grant *grant);
void ledger_grant_clear(struct ledger_grant *grant);

#endif
