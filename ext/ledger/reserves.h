/*
** reserves.h: the amounts of budgets that grants hold (dp_reserve), and how many releases the tiers
** can still afford beside them (dp_budget.releases_left).
*/
#ifndef DIFFUSE_LEDGER_RESERVES_H
#define DIFFUSE_LEDGER_RESERVES_H

#include "ledger/budget.h"

/* Amounts of a tier's budget, such as the unspent amounts of all grants. */
struct held {
  double total, delta, slack;
};

/*
** reserves_room() sets *room to a copy of the tier. The limits of this copy are those that remain
** for the owner beside the grants. reserves_left() computes what remains of them beside the
** charges: the largest amounts that a new grant may reserve. If `own` is not null, both count what
** the members of the tier `own` know. They do not know the grants whose own tiers are inside `own`.
*/
int reserves_room(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct ledger_tier *room);
int reserves_left(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct held *left);

/*
** Sets *room to a copy of the tier. The limits of this copy are the amounts that the connection's
** grant has reserved at the tier. Sets *spent to the spent part of these amounts. Returns 0 if the
** grant has no amounts at this tier.
*/
int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent);

/*
** Makes a payment at a tier from the amounts that the connection's grant has reserved there. Sets
** an error and returns 0 if the payment does not fit.
*/
int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment);

/*
** Returns the amounts that the tier `inner` must reserve, so that it can pay for every charge that
** fits `amount` at the tier `outer`. If `amount` is, say, a tenth of the outer tier's rate_limit,
** the inner tier reserves a tenth of its own slack_limit, because the slack limits of two tiers are
** independent.
*/
struct held reserve_carried(const struct held *amount, const struct ledger_tier *outer,
                            const struct ledger_tier *inner);

/* Stores the amounts that a new grant reserves at a tier. */
int reserve_insert(struct ledger *ledger, const char *grant, const struct ledger_tier *tier,
                   const struct held *amount);

/*
** Reserves amounts for the grants at a new tier. The owner has just paid, at the new tier, for
** everything that the nearest outer tier has paid. The new tier reserves, for each grant, what the
** grant still holds at the outer tier. Fails if the new tier has too little budget.
*/
int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer);

/*
** Recomputes the amounts that the grants have spent at a tier, and compares them with dp_reserve.
*/
int reserves_verify(struct ledger *ledger, const struct ledger_tier *tier);

/* Update releases_left of every tier. all_budgets_left() reads the tiers itself. */
int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count);
int all_budgets_left(struct ledger *ledger);

/*
** Returns how many further releases of weight 1 at tiers[at] every paying tier, tiers[0] to
** tiers[at], can afford. Returns -1 on failure.
*/
int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at);

#endif
