/* releases_left.h: how many releases the tiers can still afford (dp_budget.releases_left). */
#ifndef DIFFUSE_LEDGER_RELEASES_LEFT_H
#define DIFFUSE_LEDGER_RELEASES_LEFT_H

#include "ledger/handle.h"

/* Update releases_left of every tier. all_budgets_left() reads the tiers itself. */
int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count);
int all_budgets_left(struct ledger *ledger);

/*
** Returns how many further releases of weight 1 at tiers[at] every paying tier, tiers[0] to
** tiers[at], can afford. Returns -1 on failure.
*/
int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at);

#endif
