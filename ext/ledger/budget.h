/* budget.h: what a tier has spent. budget.c reads and writes dp_budget and dp_order. */
#ifndef DIFFUSE_LEDGER_BUDGET_H
#define DIFFUSE_LEDGER_BUDGET_H

#include "ledger/curve.h"
#include "math/cost.h"

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

/*
** Returns the fraction of the tier's limits that was spent, at the order at which this fraction is
** smallest.
*/
double budget_used(const struct ledger_tier *tier, const struct budget *budget);

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

#endif
