/*
** budget.h: the curves, the budgets and the reserves of tiers, and the periods of budgets
** (period.c).
*/
#ifndef DIFFUSE_LEDGER_BUDGET_H
#define DIFFUSE_LEDGER_BUDGET_H

#include <stddef.h>

#include "base/hash.h"
#include "ledger/handle.h"
#include "math/cost.h"

/* ---- RDP curves ------------------------------------------------------------------------------ */

/*
** The RDP that a cost has in addition to the RDP of its rate (math/cost.h), at the stored orders
** (math/cost.h) and at the filter order of one tier.
*/
#define CURVE_SIZE  (RENYI_ORDERS + 1)
#define AT_INFINITY (RENYI_ORDERS - 1)
#define AT_FILTER   RENYI_ORDERS
struct curve {
  int any; /* 0: the curve is zero at every order, and `values` is not set */
  double values[CURVE_SIZE];
};

/*
** Returns the curve of a cost, rounded up. If the filter order is NaN, the entry at the filter
** order is 0.
*/
struct curve curve_of(const struct cost *cost, double filter_order);

/* Returns, for each order, how far the curve `cost` exceeds the curve `paid`, or 0. */
struct curve curve_missing(const struct curve *cost, const struct curve *paid);

/* Adds one curve to another, rounded up. */
void curve_add(struct curve *sum, const struct curve *term);

/* Reads a curve from a column. NULL stands for no curve. Sets the error if the blob is damaged. */
struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column);

/* Reads a curve from the bytes of a blob. */
struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored);

/* Returns the bytes that the ledger stores for a curve, or a null pointer if there is no curve. */
#define CURVE_BYTES (CURVE_SIZE * 8)
struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]);

/* ---- what a tier has spent ------------------------------------------------------------------- */

/* What a tier has spent, or what a grant has spent at a tier. */
struct budget {
  struct total rate;
  double slack, delta;
  double curve; /* the total of the curves, at the filter order */
  double pure;  /* the total RDP at order infinity; infinite after a charge with a rate */
  int64_t releases;
};

/*
** An amount that a tier has paid or must pay for one release. In a return (ledger_return()), rate
** and slack are negative, and the others are 0.
*/
struct payment {
  struct total rate;
  double slack, delta;
  struct curve curve;
};

/* Returns whether what was spent is within the limits of the tier. */
int budget_within(const struct ledger_tier *tier, const struct budget *budget);

/* Adds a payment to what was spent. `first` is 1 if this is the first payment for its release. */
struct budget budget_after(const struct budget *budget, const struct payment *payment, int first);

/*
** Returns the epsilon that a tier has spent so far, rounded up. This epsilon belongs to the tier's
** delta without the parts that are set aside for key selection and lattice slack. `curve` is the
** sum of the tier's curves (null: no curves).
*/
double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve);

/*
** Returns the number of times that a tier can still pay an amount in addition to the spent budget.
** Returns infinity if the amount is 0.
*/
double budget_repeats(const struct ledger_tier *tier, const struct budget *spent,
                      const struct budget *amount);

/*
** budget_read() and budget_write() read and write the running totals of a tier. orders_read() and
** orders_write() read and write the sum of the curves of its charges at the stored orders.
** budget_write() also stores the columns that follow from the totals.
*/
int budget_read(struct ledger *ledger, const char *tier, struct budget *budget);
struct curve orders_read(struct ledger *ledger, const char *tier);
int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve);
int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget);

/* ---- what grants have reserved --------------------------------------------------------------- */

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

/* Returns whether a name is '<grant>/<name>' and this grant exists (grant.c). */
int grant_owns_name(struct ledger *ledger, const char *name);

/* Finds a discrepancy between grants, charges and budgets (grant.c). */
int grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count);

/* ---- budgets by period (period.c) ------------------------------------------------------------ */

/*
** Returns the largest number of periods of an outer tier that can overlap one period of an inner
** tier. Null means a period that never ends. Returns 0 if there is no largest number, because the
** inner period never ends and the outer periods do.
*/
int period_overlaps(const char *inner, const char *outer);

/*
** Starts a period of a tier. The period begins on the day `start`. The totals of the tier become 0.
*/
int period_enter(struct ledger *ledger, const char *tier, const char *start);

/*
** Starts the current period of every tier whose rate is at least `rate` and whose period is over.
** Sets *entered to 1 if there was such a tier. The caller must then update releases_left.
*/
int periods_enter(struct ledger *ledger, double rate, int *entered);

/*
** If a tier has a period, appends three members to a JSON object. `period` is the kind of period.
** `per_period` is the budget of one period. `all_periods` is the guarantee for all periods until
** now: the epsilon and delta if the whole budget was spent in each of these periods.
*/
void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json);

/*
** Writes the name of the tier's current period, such as 'January 2026', to `name`. Writes '' if the
** tier has no periods.
*/
void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size);

/*
** Returns the first day of the period that a tier has entered, or null if the tier has no periods.
** The caller calls sqlite3_free().
*/
char *period_entered(struct ledger *ledger, const char *tier);

/*
** Returns whether a period of the tier can begin on the day `start`, which is null for a tier
** without periods.
*/
int period_begins_on(struct ledger *ledger, const struct ledger_tier *tier, const char *start);

/*
** PERIOD_START is SQL for the first day of the period that contains a time. PERIOD_END is SQL for
** the first day of the next period. `kind` is the kind of period, such as 'month'. All days are in
** UTC, and weeks begin on Monday (ISO 8601). Both results are NULL if the kind is NULL.
*/
#define PERIOD_START(kind, time)                                                                   \
  "(CASE " kind " WHEN 'day' THEN date(" time ") WHEN 'week' THEN"                                 \
  " date(" time ", '-6 days', 'weekday 1') WHEN 'month' THEN date(" time ", 'start of month')"     \
  " WHEN 'quarter' THEN date(" time ", 'start of month', '-' ||"                                   \
  " ((strftime('%m', " time ") - 1) % 3) || ' months')"                                            \
  " WHEN 'year' THEN date(" time ", 'start of year') END)"
#define PERIOD_END(kind, start)                                                                    \
  "date(" start ", CASE " kind " WHEN 'day' THEN '+1 day' WHEN 'week' THEN '+7 days'"              \
  " WHEN 'month' THEN '+1 month' WHEN 'quarter' THEN '+3 months' WHEN 'year' THEN '+1 year' END)"

/* SQL for the kind of period of the tier ?1. */
#define TIER_PERIOD "(SELECT period FROM dp_tier WHERE name = ?1)"

#endif
