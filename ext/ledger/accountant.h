/* accountant.h: an accountant adds up the costs of a tier's releases and decides when the tier's
** budget is spent. Each is one struct in accountants.c. The rest of the ledger uses the members of
** this struct and never compares names.
**
** An accountant enforces a budget as a limit on one number, `total`: a zCDP rate for RDP and exact
** Gaussian accounting, an epsilon for pure differential privacy. RDP accounting has a second limit,
** on the sum of pure epsilons, and needs only one of the two. */
#ifndef DIFFUSE_LEDGER_ACCOUNTANT_H
#define DIFFUSE_LEDGER_ACCOUNTANT_H

#include "math/math.h"

struct ledger;
struct ledger_tier;
struct budget;
struct payment;

struct accountant {
  const char *name;    /* of dp_tier.accountant; the CHECK in sql/ledger.sql lists all names */
  const char *title;   /* the name in error messages */
  const char *theorem; /* the theorem that the certificate names */

  /* The budgets and releases that the accountant covers. A tier with this accountant refuses all
  ** others. The cost of a model to which dp_diffuse() added noise is proved for RDP only
  ** (models/models.h). */
  int has_delta;              /* 1: budgets may have a positive delta; 0: delta is 0 */
  int covers_rates;           /* 1: covers Gaussian noise, whose cost is a zCDP rate */
  int covers_curves;          /* 1: covers noise whose cost has an RDP curve beside a rate */
  int covers_diffused_models; /* 1: covers a model to which dp_diffuse() added noise */
  const char *refusal; /* a release that is not covered: the words after "tier '...'"; or null */

  /* reserve_slack() sets slack_limit, the part of delta that is set aside for the total variation
  ** distance between lattice noise and continuous noise, and returns 0 if it is not enough for one
  ** draw. draws_left() returns the number of draws that the remaining slack allows. Both are null
  ** if the accountant needs no slack. */
  int (*reserve_slack)(struct ledger_tier *tier);
  double (*draws_left)(const struct ledger_tier *tier, const struct budget *budget);

  /* Computes three members of a tier from the others. filter_order is the order at which the
  ** accountant adds up RDP curves, or NaN if it covers no curves. rate_limit is the limit on
  ** `total`. pure_limit is a limit on the sum of epsilons, or NaN if `total` counts alone. What was
  ** spent must be within one of the two limits. Returns 0 if the budget allows nothing to be
  ** spent. */
  int (*set_limit)(struct ledger_tier *tier);

  /* Returns the spent amount of the budget, in the unit of rate_limit; infinite if not covered. */
  struct total (*total)(const struct ledger_tier *tier, const struct budget *budget);

  /* Sets the error for a payment that does not fit the budget. The error says how much the payment
  ** needs and how much is left. Returns 0. */
  int (*refuse)(struct ledger *ledger, const struct ledger_tier *tier, const struct budget *before,
                const struct budget *after, const struct payment *payment);

  /* Returns the epsilon of a rate and a curve together, rounded up. `curve` holds values at the
  ** stored orders (math/math.h), or is null. The epsilon belongs to the part of the tier's delta
  ** that is for noise. */
  double (*epsilon)(const struct ledger_tier *tier, double rate, const double *curve);

  /* Returns the value of dp_order.allowed: the amount that the tier may spend at order alpha,
  ** negative if this order cannot prove the tier's (epsilon, delta), however little is spent. */
  double (*allowed)(const struct ledger_tier *tier, double alpha);

  /* Returns the least proven epsilon of `count` >= 1 budgets that are all spent completely, one
  ** after the other, rounded up. The delta is `count` times the tier's delta and must be below 1.
  ** The result may be NaN or larger than the sum of the epsilons; the caller then uses the sum.
  ** Null if the accountant only adds up epsilons. */
  double (*composed)(const struct ledger_tier *tier, double count);

  /* Convert the rate of one release to the most that the release costs in the unit of `total`, and
  ** such a cost back to a rate. The variance or scale of the noise is rounded up to an integer in
  ** lattice units, so a release can cost as little as least_part times cost_of_rate(). */
  double (*cost_of_rate)(double rate);
  double (*rate_of_cost)(double cost);
  double least_part;

  /* Returns the largest amount that a tier with this accountant can spend, converted to the `total`
  ** of an inner tier whose filter_order is `order`. */
  double (*most_at)(const struct ledger_tier *tier, double order);
};

/* The table of accountants, which ends with a null pointer. The first accountant is the default of
** dp_tier() and covers every release. */
extern const struct accountant *const accountants[];

/* Returns the accountant with this name, or null; the default accountant if `name` is null. */
const struct accountant *accountant_find(const char *name);

/* Returns the names for an error message, as in "'a', 'b' or 'c'". The caller calls sqlite3_free().
** Returns null if memory runs out. */
char *accountant_names(void);

#endif
