/*
** tier.c: which tiers may be created.
**
** A tier pays for everything that is published at it and at every tier outside it (charge.c). So a
** tier whose budget is smaller than that of the tier outside it would one day refuse releases that
** the outer tier could still afford, for ever. Such a tier is refused, and so is one that cannot
** afford a single release at its own rate; the errors say which numbers would do.
**
** For the size of a budget the nearest outer tier is enough to look at, because it pays for what
** all tiers outside it publish. For mechanisms it is not: a tier with the accountant 'rdp' between
** two others bears what both publish. What has been spent does not matter: a new tier is charged
** for what its outer neighbour has paid, so both have the same left to spend if their limits are
** equal. A new tier may lie outside one with a smaller budget, whose releases_left then bounds its
** own (dp_budget).
*/
#include <math.h>

#include "ledger/internal.h"
#include "math/laplace.h"
#include "math/mixing.h"

SQLITE_EXTENSION_INIT3

/* Rounded to four digits, up (1) or down (-1): for messages, so that what they say does. */
static double four_digits(double x, int direction) {
  if (!(x > 0) || !isfinite(x)) return x;
  double unit = pow(10, floor(log10(x)) - 3);
  return (direction > 0 ? ceil(x / unit * (1 + 1e-9)) : floor(x / unit * (1 - 1e-9))) * unit;
}

/* ---- what a tier must admit ------------------------------------------------------------------ */

/*
** The least that one release at the tier's rate costs, in units of rate_limit: the lattice rounds
** scales up to whole numbers, which are 2^19 at least, and variances, which are 2^40.
*/
static double cost_of_one(const struct ledger_tier *tier) {
  return tier->accountant == LEDGER_PURE ? laplace_distance(tier->rate) * (1 - 0x1p-19)
                                         : tier->rate * (1 - 0x1p-39);
}

/* The rate of which one release costs as much as the budget. */
static double rate_of_budget(const struct ledger_tier *tier) {
  double limit = tier->rate_limit;
  return tier->accountant == LEDGER_PURE ? limit + expm1(-limit) : limit;
}

/*
** The limit that a tier needs if the outer tier is to be able to spend its budget. Between Gaussian
** accountants that is the outer limit. A pure outer tier can spend at most what randomized response
** with its epsilon costs at the filter order. What a tier with the accountant 'rdp' costs in pure
** privacy has no bound of its own, so its epsilon stands for it.
*/
static double limit_needed(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  int pure = tier->accountant == LEDGER_PURE, outer_pure = outer->accountant == LEDGER_PURE;
  if (pure) return outer->epsilon;
  if (!outer_pure) return outer->rate_limit;
  return response_rdp(tier->filter_order, outer->epsilon) / tier->filter_order;
}

/* Whether the filter admits one release, and all that the outer tier (if any) may publish. */
static int suffices(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  return cost_of_one(tier) <= tier->rate_limit &&
         (!outer || limit_needed(tier, outer) <= tier->rate_limit);
}

/* The least epsilon with which a tier like this suffices, or NaN. */
static double epsilon_for(struct ledger_tier tier, const struct ledger_tier *outer) {
  double low = tier.epsilon, high = tier.epsilon;
  do {
    high *= 2;
    tier.epsilon = high;
    if (!(high < 1e9) || !filter_make(&tier)) return NAN;
  } while (!suffices(&tier, outer));
  for (int i = 0; i < 60; i++) {
    tier.epsilon = (low + high) / 2;
    if (filter_make(&tier) && suffices(&tier, outer)) {
      high = tier.epsilon;
    } else {
      low = tier.epsilon;
    }
  }
  return high;
}

/* "an epsilon of at least ... does", where there is one. To be freed. */
static char *advice_on_epsilon(const struct ledger_tier *tier, const struct ledger_tier *outer,
                               const char *before) {
  double epsilon = epsilon_for(*tier, outer);
  return isnan(epsilon) ? sqlite3_mprintf("%s", "")
                        : sqlite3_mprintf("%san epsilon of at least %.4g does", before,
                                          four_digits(epsilon, 1));
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int admits_one(struct ledger *ledger, const struct ledger_tier *tier,
                      const struct ledger_tier *outer) {
  if (cost_of_one(tier) <= tier->rate_limit) return 1;
  char *advice = advice_on_epsilon(tier, outer, "; or ");
  struct ledger_tier exact = *tier;
  exact.accountant = LEDGER_GDP;
  int is_enough = tier->accountant == LEDGER_RDP && filter_make(&exact) && suffices(&exact, outer);
  ledger_fail(ledger,
              "the budget of tier '%s', epsilon %g at delta %g, does not admit one release of its "
              "rate %g (a rate of at most %.4g fits once%s%s)",
              tier->name, tier->epsilon, tier->delta, tier->rate,
              four_digits(rate_of_budget(tier), -1), advice ? advice : "",
              is_enough ? "; or the accountant 'gdp'" : "");
  sqlite3_free(advice);
  return 0;
}

/* ---- what outer tiers may publish ------------------------------------------------------------ */

const struct ledger_tier *tier_outside(const struct ledger_tier *tier,
                                       const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    if (tiers[i].rate < tier->rate) return &tiers[i];
  }
  return 0;
}

/* A tier of exact Gaussian accounting and one of pure privacy have no mechanism in common. */
static int shares_a_mechanism(struct ledger *ledger, const struct ledger_tier *tier,
                              const struct ledger_tier *outer) {
  int gaussian = tier->accountant == LEDGER_GDP || outer->accountant == LEDGER_GDP;
  int pure = tier->accountant == LEDGER_PURE || outer->accountant == LEDGER_PURE;
  if (!gaussian || !pure) return 1;
  return ledger_fail(ledger,
                     "tier '%s' would refuse everything that tier '%s' outside it may publish: one "
                     "has the accountant 'gdp', the other 'pure' (take 'rdp' for one of them)",
                     tier->name, outer->name);
}

static int carries(struct ledger *ledger, const struct ledger_tier *tier,
                   const struct ledger_tier *outer) {
  if (tier->accountant != LEDGER_PURE && !(tier->delta_keys >= outer->delta_keys))
    return ledger_fail(ledger,
                       "tier '%s' would block tier '%s' outside it, whose private keys it pays for "
                       "(delta_keys of at least %.15g)",
                       tier->name, outer->name, outer->delta_keys);
  if (limit_needed(tier, outer) <= tier->rate_limit) return 1;
  char *advice = advice_on_epsilon(tier, outer, "");
  ledger_fail(
      ledger,
      "tier '%s' would block tier '%s' outside it: it pays for all that '%s' publishes, and "
      "its budget, epsilon %g at delta %g, is smaller than that of '%s', epsilon %g at "
      "delta %g (%s)",
      tier->name, outer->name, outer->name, tier->epsilon, tier->delta, outer->name, outer->epsilon,
      outer->delta, advice && *advice ? advice : "take the accountant 'rdp'");
  sqlite3_free(advice);
  return 0;
}

int tier_make(struct ledger *ledger, struct ledger_tier *tier, const struct ledger_tier *tiers,
              int count) {
  const struct ledger_tier *outer = tier_outside(tier, tiers, count);
  if (!filter_make(tier))
    return ledger_fail(ledger,
                       tier->accountant == LEDGER_GDP
                           ? "epsilon %g is too large for exact Gaussian accounting on the lattice "
                             "at delta %g (use the accountant 'rdp')"
                           : "epsilon %g with delta %g leaves nothing to spend",
                       tier->epsilon, tier->delta);
  for (int i = 0; i < count; i++) {
    if (tiers[i].rate < tier->rate && !shares_a_mechanism(ledger, tier, &tiers[i])) return 0;
  }
  return admits_one(ledger, tier, outer) && (!outer || carries(ledger, tier, outer));
}
