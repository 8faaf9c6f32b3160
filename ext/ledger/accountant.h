/*
** accountant.h: how a tier adds up what it pays, and where it stops.
**
** An accountant is one struct in a file of its own (rdp.c, gdp.c, pure.c) and one row of the table
** in accountant.c. The rest of the ledger asks these members and never for a name. A budget is
** enforced as a limit on one number, `total`: a zCDP rate for RDP and exact Gaussian accounting, an
** epsilon for pure differential privacy.
*/
#ifndef DIFFUSE_LEDGER_ACCOUNTANT_H
#define DIFFUSE_LEDGER_ACCOUNTANT_H

#include "math/total.h"

struct ledger;
struct ledger_tier;
struct budget;
struct payment;

struct accountant {
  const char *name;    /* in dp_tier.accountant, whose CHECK lists it (sql/ledger.sql) */
  const char *title;   /* in error messages */
  const char *theorem; /* in the certificate */

  /* What it covers. A tier refuses a release that its accountant does not cover. */
  int has_delta;              /* 0: budgets have delta 0 */
  int covers_rates;           /* Gaussian noise, whose cost is a zCDP rate */
  int covers_curves;          /* noise whose cost is an RDP curve beyond the rate */
  int covers_diffused_models; /* noise on top of a model, which is proved for RDP (sgd.h) */
  const char *refusal;        /* what a tier '...' with it says of other releases, or null */

  /*
  ** Sets slack_limit, the total variation between lattice and continuous noise that is set aside
  ** out of delta. 0: too little is left for one draw. Null: slack is nothing to this accountant.
  */
  int (*reserve_slack)(struct ledger_tier *tier);

  /* How many draws the slack that is left allows. Null where reserve_slack is. */
  double (*draws_left)(const struct ledger_tier *tier, const struct budget *budget);

  /*
  ** Sets filter_order, the one order at which curves count (NaN: none does), and rate_limit, the
  ** limit of `total`, from the other members of a tier. 0: nothing is left to spend.
  */
  int (*set_limit)(struct ledger_tier *tier);

  /* What a budget holds against rate_limit. */
  struct total (*total)(const struct ledger_tier *tier, const struct budget *budget);

  /* Refuses a payment that does not fit: says what it needs and what is left. Returns 0. */
  int (*refuse)(struct ledger *ledger, const struct ledger_tier *tier, const struct budget *before,
                const struct budget *after, const struct payment *payment);

  /*
  ** The epsilon, rounded up, of a rate and a curve at the stored orders (null: none), at the part
  ** of the tier's delta that is for noise.
  */
  double (*epsilon)(const struct ledger_tier *tier, double rate, const double *curve);

  /* What dp_order allows: what an order may spend. Negative: it cannot certify the budget alone. */
  double (*allowed)(const struct ledger_tier *tier, double alpha);

  /* What one release of a tier's rate costs, as a total, and the rate of one that costs so much. */
  double (*cost_of_rate)(double rate);
  double (*rate_of_cost)(double cost);

  /* The lattice rounds noise up, so that a release costs at least this part of cost_of_rate(). */
  double least_part;

  /*
  ** The most that a tier with this accountant can spend, as the total of an inner tier whose
  ** filter_order is `order`.
  */
  double (*most_at)(const struct ledger_tier *tier, double order);
};

extern const struct accountant accountant_rdp, accountant_gdp, accountant_pure;

/* The table, which a null pointer ends. The first is the default of dp_tier(), and covers all. */
extern const struct accountant *const accountants[];

/* An accountant by its name, or null; the default for a null name. */
const struct accountant *accountant_find(const char *name);

/* The names for an error message, as in "'a', 'b' or 'c'" (sqlite3_free). Null: out of memory. */
char *accountant_names(void);

/* A limit below the truth by what math/ may be wrong. */
#define ACCOUNTANT_BELOW(limit) ((limit) * (1 - 0x1p-46))

#endif
