/*
** accountant.h: how a tier adds up what it pays, and where it stops.
**
** An accountant is one struct in a file of its own (rdp.c, gdp.c, pure.c) and one row of the table
** in accountant.c. The rest of the ledger uses these members and never compares names. An
** accountant enforces a budget as a limit on one number, `total`: a zCDP rate for RDP and exact
** Gaussian accounting, an epsilon for pure differential privacy.
*/
#ifndef DIFFUSE_LEDGER_ACCOUNTANT_H
#define DIFFUSE_LEDGER_ACCOUNTANT_H

#include "math/total.h"

struct ledger;
struct ledger_tier;
struct budget;
struct payment;

struct accountant {
  const char *name;    /* as stored in dp_tier.accountant; the CHECK in sql/ledger.sql lists it */
  const char *title;   /* in error messages */
  const char *theorem; /* in the certificate */

  /* The releases that it covers. A tier refuses all others. */
  int has_delta;              /* 0: budgets have delta 0 */
  int covers_rates;           /* Gaussian noise, whose cost is a zCDP rate */
  int covers_curves;          /* noise whose cost is an RDP curve beyond the rate */
  int covers_diffused_models; /* noise on top of a model: proved for RDP only (sgd.h) */
  const char *refusal;        /* the error after "tier '...'" for other releases, or null */

  /*
  ** Sets slack_limit: the part of delta that is set aside for the total variation distance between
  ** lattice noise and continuous noise. Returns 0 if too little is left for one draw. The member is
  ** null if the accountant needs no slack.
  */
  int (*reserve_slack)(struct ledger_tier *tier);

  /* The number of draws that the remaining slack allows. Null if reserve_slack is null. */
  double (*draws_left)(const struct ledger_tier *tier, const struct budget *budget);

  /*
  ** Computes two members of a tier from the others: filter_order, the one order at which curves
  ** count (NaN: curves do not count), and rate_limit, the limit on `total`. Returns 0 if nothing is
  ** left to spend.
  */
  int (*set_limit)(struct ledger_tier *tier);

  /* The part of the budget that is spent, to be compared with rate_limit. */
  struct total (*total)(const struct ledger_tier *tier, const struct budget *budget);

  /* Reports that a payment does not fit: how much it needs and how much is left. Returns 0. */
  int (*refuse)(struct ledger *ledger, const struct ledger_tier *tier, const struct budget *before,
                const struct budget *after, const struct payment *payment);

  /*
  ** The epsilon of a rate plus a curve at the stored orders (null: no curve), at the part of the
  ** tier's delta that is for noise. Rounded up.
  */
  double (*epsilon)(const struct ledger_tier *tier, double rate, const double *curve);

  /*
  ** dp_order.allowed: how much may be spent at an order. Negative if the order alone cannot certify
  ** the budget.
  */
  double (*allowed)(const struct ledger_tier *tier, double alpha);

  /*
  ** The least epsilon of `count` whole budgets, one after the other, at `count` times the tier's
  ** delta, which must be below 1. Rounded up; NaN or too large if this proof gives nothing. Null
  ** if epsilons just add up. count >= 1.
  */
  double (*composed)(const struct ledger_tier *tier, double count);

  /* Converts the rate of one release to its cost, as a `total`; and back. */
  double (*cost_of_rate)(double rate);
  double (*rate_of_cost)(double cost);

  /*
  ** The lattice rounds noise up, so a release can cost less, but at least this part of
  ** cost_of_rate().
  */
  double least_part;

  /*
  ** The most that a tier with this accountant can spend, converted to the `total` of an inner tier
  ** whose filter_order is `order`.
  */
  double (*most_at)(const struct ledger_tier *tier, double order);
};

extern const struct accountant accountant_rdp, accountant_gdp, accountant_pure;

/*
** The table; a null pointer ends it. The first accountant is the default of dp_tier() and covers
** every release.
*/
extern const struct accountant *const accountants[];

/* An accountant by its name, or null; the default for a null name. */
const struct accountant *accountant_find(const char *name);

/* The names for an error message, as in "'a', 'b' or 'c'" (sqlite3_free). Null: out of memory. */
char *accountant_names(void);

/* Lowers a limit by the largest error that math/ can make. */
#define ACCOUNTANT_BELOW(limit) ((limit) * (1 - 0x1p-46))

#endif
