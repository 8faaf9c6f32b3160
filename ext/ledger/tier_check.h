/* tier_check.h: decides which tiers may be created. */
#ifndef DIFFUSE_LEDGER_TIER_CHECK_H
#define DIFFUSE_LEDGER_TIER_CHECK_H

#include "ledger/handle.h"

/* Returns the nearest of the tiers outside a tier, or null. */
const struct ledger_tier *tier_outside(const struct ledger_tier *tier,
                                       const struct ledger_tier *tiers, int count);

/*
** Computes the limits of a new tier. The function refuses a tier that could not afford one release
** at its own rate. It also refuses a tier whose budget could run out before the tiers outside it
** have spent their budgets.
*/
int tier_make(struct ledger *ledger, struct ledger_tier *tier, const struct ledger_tier *tiers,
              int count);

#endif
