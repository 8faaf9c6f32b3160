/* tier.c: creates and drops tiers (dp_tier). Tests: tests/ledger/test_tiers.py */
#include <math.h>
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- which tiers may be created -------------------------------------------------------------- */

/* A tier pays for everything that is published at it and at every tier outside it (charge.c). An
** inner tier with a smaller budget than the tier outside it could block releases that the outer
** tier can still afford, so dp_tier() refuses it, and also a tier that cannot afford a single
** release at its own rate. The errors say which numbers would be enough.
**
** A budget is compared with that of the nearest outer tier only, which pays for everything that is
** published outside it. Mechanisms are compared with those of all outer tiers, because a tier whose
** accountant covers every mechanism may lie between two tiers whose accountants do not. What was
** spent so far does not matter: a new tier is charged what its nearest outer tier has paid, so with
** equal limits both have the same amount left. A new tier may lie outside a tier with a smaller
** budget, whose releases_left then limits its own (dp_budget).
**
** If the periods of two tiers differ, several budgets of the outer tier can fall into one period of
** the inner tier, whose budget must be enough for all of them (period_overlaps()). This is checked
** for the tiers outside and inside a new tier. */

/* Rounds up (1) or down (-1) to four digits, so that the number still satisfies the condition. */
static double four_digits(double x, int direction) {
  if (!(x > 0) || !isfinite(x)) return x;
  double unit = pow(10, floor(log10(x)) - 3);
  return (direction > 0 ? ceil(x / unit * (1 + 1e-9)) : floor(x / unit * (1 - 1e-9))) * unit;
}

/* Sets the limits of a new tier. Returns 0 if nothing is left to spend. */
static int filter_make(struct ledger_tier *tier) {
  const struct accountant *accountant = tier->accountant;
  tier->slack_limit = 0;
  return (!accountant->reserve_slack || accountant->reserve_slack(tier)) &&
         accountant->set_limit(tier);
}

/* Returns the lowest possible cost of one release at the tier's rate, in the unit of rate_limit. */
static double cost_of_one(const struct ledger_tier *tier) {
  return tier->accountant->cost_of_rate(tier->rate) * tier->accountant->least_part;
}

/* Returns the limit that a tier needs: it pays for the whole budget of the outer tier in each
** period that overlaps one of its own. The factor 1 - 2^-40 covers the rounding of the product. */
static double limit_needed(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  int overlaps = period_overlaps(tier->period, outer->period);
  double most = outer->accountant->most_at(outer, tier->filter_order);
  return overlaps > 1 ? most * overlaps * (1 - 0x1p-40) : most;
}

static double keys_needed(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  int overlaps = period_overlaps(tier->period, outer->period);
  return outer->delta_keys * (overlaps > 1 ? overlaps * (1 - 0x1p-40) : 1);
}

static int pays_for(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  return limit_needed(tier, outer) <= tier->rate_limit && !(outer->pure_limit > tier->pure_limit);
}

/* Returns whether the limits allow one release, and all that the outer tier (or null) may
** publish. */
static int suffices(const struct ledger_tier *tier, const struct ledger_tier *outer) {
  return cost_of_one(tier) <= tier->rate_limit && (!outer || pays_for(tier, outer));
}

/* Halves the interval between an epsilon with which `fits` refuses the tier and one with which it
** does not, and returns the end that is not refused. */
static double halve(struct ledger_tier tier, const struct ledger_tier *other,
                    int (*fits)(const struct ledger_tier *tier, const struct ledger_tier *other),
                    double refused, double admitted) {
  for (int i = 0; i < 60; i++) {
    tier.epsilon = (refused + admitted) / 2;
    double *end = filter_make(&tier) && fits(&tier, other) ? &admitted : &refused;
    *end = tier.epsilon;
  }
  return admitted;
}

/* Returns the smallest epsilon that is enough for this tier, or NaN if no epsilon is enough. */
static double epsilon_for(struct ledger_tier tier, const struct ledger_tier *outer) {
  double low = tier.epsilon;
  do {
    tier.epsilon *= 2;
    if (!(tier.epsilon < 1e9) || !filter_make(&tier)) return NAN;
  } while (!suffices(&tier, outer));
  return halve(tier, outer, suffices, low, tier.epsilon);
}

/* Returns the advice "an epsilon of at least ... does", or "" if there is none. */
static char *advice_on_epsilon(const struct ledger_tier *tier, const struct ledger_tier *outer,
                               const char *before) {
  double epsilon = epsilon_for(*tier, outer);
  return isnan(epsilon) ? sqlite3_mprintf("%s", "")
                        : sqlite3_mprintf("%san epsilon of at least %.4g does", before,
                                          four_digits(epsilon, 1));
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Returns an accountant that covers fewer mechanisms and for which the tier's budget is enough, or
** null. */
static const struct accountant *narrower(const struct ledger_tier *tier,
                                         const struct ledger_tier *outer) {
  const struct accountant *wide = tier->accountant;
  for (int i = 0; accountants[i]; i++) {
    struct ledger_tier other = *tier;
    other.accountant = accountants[i];
    int rates = other.accountant->covers_rates, curves = other.accountant->covers_curves;
    if (other.accountant->has_delta == wide->has_delta && rates <= wide->covers_rates &&
        curves <= wide->covers_curves &&
        rates + curves < wide->covers_rates + wide->covers_curves && filter_make(&other) &&
        suffices(&other, outer))
      return other.accountant;
  }
  return 0;
}

static int admits_one(struct ledger *ledger, const struct ledger_tier *tier,
                      const struct ledger_tier *outer) {
  if (cost_of_one(tier) <= tier->rate_limit) return 1;
  const struct accountant *other = narrower(tier, outer);
  char *advice = advice_on_epsilon(tier, outer, "; or ");
  ledger_fail(ledger,
              "the budget of tier '%s', epsilon %g at delta %g, does not admit one release of its "
              "rate %g (a rate of at most %.4g fits once%s%s%s%s%s)",
              tier->name, tier->epsilon, tier->delta, tier->rate,
              four_digits(tier->accountant->rate_of_cost(tier->rate_limit), -1),
              advice ? advice : "", other ? "; or the accountant '" : "", other ? other->name : "",
              other ? "'" : "",
              tier->delta > 0 ? "; dp_rate() computes the rate of n releases" : "");
  sqlite3_free(advice);
  return 0;
}

/* ---- what outer tiers may publish ------------------------------------------------------------ */

/* Returns the nearest of the tiers outside a tier, or null. */
static const struct ledger_tier *tier_outside(const struct ledger_tier *tier,
                                              const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    if (tiers[i].rate < tier->rate) return &tiers[i];
  }
  return 0;
}

/* Refuses two tiers whose accountants cover no mechanism in common, and which would block each
** other. */
static int shares_a_mechanism(struct ledger *ledger, const struct ledger_tier *tier,
                              const struct ledger_tier *outer) {
  const struct accountant *a = tier->accountant, *b = outer->accountant;
  if ((a->covers_rates && b->covers_rates) || (a->covers_curves && b->covers_curves)) return 1;
  return ledger_fail(ledger,
                     "tier '%s' would refuse everything that tier '%s' outside it may publish: one "
                     "has the accountant '%s', the other '%s' (take '%s' for one of them)",
                     tier->name, outer->name, a->covers_rates ? a->name : b->name,
                     a->covers_rates ? b->name : a->name, accountants[0]->name);
}

static int carries(struct ledger *ledger, const struct ledger_tier *tier,
                   const struct ledger_tier *outer) {
  double keys = keys_needed(tier, outer);
  if (tier->accountant->has_delta && !(tier->delta_keys >= keys))
    return ledger_fail(ledger,
                       "tier '%s' would block tier '%s' outside it, whose private keys it pays for "
                       "(delta_keys of at least %.15g)",
                       tier->name, outer->name,
                       outer->delta_keys * period_overlaps(tier->period, outer->period));
  if (pays_for(tier, outer)) return 1;
  char *advice = advice_on_epsilon(tier, outer, "");
  int is_advised = advice && *advice;
  int overlaps = period_overlaps(tier->period, outer->period);
  char *times = overlaps > 1 ? sqlite3_mprintf("%d times ", overlaps) : sqlite3_mprintf("");
  ledger_fail(
      ledger,
      "tier '%s' would block tier '%s' outside it: it pays for all that '%s' publishes, and "
      "its budget, epsilon %g at delta %g%s%s, is smaller than %sthat of '%s', epsilon %g at "
      "delta %g%s%s (%s%s%s)",
      tier->name, outer->name, outer->name, tier->epsilon, tier->delta,
      tier->period ? " for each " : "", tier->period ? tier->period : "", times ? times : "",
      outer->name, outer->epsilon, outer->delta, outer->period ? " for each " : "",
      outer->period ? outer->period : "", is_advised ? advice : "take the accountant '",
      is_advised ? "" : accountants[0]->name, is_advised ? "" : "'");
  sqlite3_free(times);
  sqlite3_free(advice);
  return 0;
}

/* ---- periods --------------------------------------------------------------------------------- */

/* Refuses a tier without a period inside a tier with a period: no single budget could pay for all
** of the outer tier's. */
static int sees_an_end(struct ledger *ledger, const struct ledger_tier *inner,
                       const struct ledger_tier *outer) {
  return period_overlaps(inner->period, outer->period) > 0 ||
         ledger_fail(ledger,
                     "tier '%s' has no period and would lie inside tier '%s', which has a new "
                     "budget every %s, so what '%s' pays for has no end (give both the period "
                     "'%s')",
                     inner->name, outer->name, outer->period, inner->name, outer->period);
}

/* Returns whether an inner tier can pay for an outer tier with another period. */
static int is_afforded(const struct ledger_tier *outer, const struct ledger_tier *inner) {
  return limit_needed(inner, outer) <= inner->rate_limit &&
         (!inner->accountant->has_delta || keys_needed(inner, outer) <= inner->delta_keys);
}

/* Checks a new tier against the next tier inside it, which may have the smaller budget if both have
** the same period. */
static int fits_inside(struct ledger *ledger, const struct ledger_tier *tier,
                       const struct ledger_tier *inner) {
  if (!sees_an_end(ledger, inner, tier)) return 0;
  if (same_texts(inner->period, tier->period) || is_afforded(tier, inner)) return 1;
  double epsilon = four_digits(halve(*tier, inner, is_afforded, tier->epsilon, 0), -1);
  char *advice = epsilon > 0 ? sqlite3_mprintf("an epsilon of at most %.4g does; or ", epsilon)
                             : sqlite3_mprintf("");
  ledger_fail(
      ledger,
      "tier '%s' inside tier '%s' pays for all that '%s' publishes, and its budget for each "
      "%s is smaller than %d budgets of '%s' (%sgive '%s' the same period)",
      inner->name, tier->name, tier->name, inner->period,
      period_overlaps(inner->period, tier->period), tier->name, advice ? advice : "", tier->name);
  sqlite3_free(advice);
  return 0;
}

/* Computes the limits of a new tier, and refuses it for the reasons at the top of this file. */
static int tier_make(struct ledger *ledger, struct ledger_tier *tier,
                     const struct ledger_tier *tiers, int count) {
  const struct ledger_tier *outer = tier_outside(tier, tiers, count);
  const struct ledger_tier *inner = 0; /* the nearest of the tiers inside */
  for (int i = 0; i < count && tiers[i].rate > tier->rate; i++) inner = &tiers[i];
  int has_limit = filter_make(tier);
  if (!has_limit && tier->accountant->reserve_slack)
    return ledger_fail(ledger,
                       "epsilon %g is too large for %s on the lattice at delta %g (use the "
                       "accountant '%s')",
                       tier->epsilon, tier->accountant->title, tier->delta, accountants[0]->name);
  if (!has_limit)
    return ledger_fail(ledger, "epsilon %g with delta %g leaves nothing to spend", tier->epsilon,
                       tier->delta);
  if (outer && !sees_an_end(ledger, tier, outer)) return 0;
  for (int i = 0; i < count; i++) {
    if (tiers[i].rate < tier->rate && !shares_a_mechanism(ledger, tier, &tiers[i])) return 0;
  }
  return admits_one(ledger, tier, outer) && (!outer || carries(ledger, tier, outer)) &&
         (!inner || fits_inside(ledger, tier, inner));
}

/* ---- creating and dropping tiers ------------------------------------------------------------- */

static int store_tier(struct ledger *ledger, const struct ledger_tier *tier) {
  statement_run(
      ledger, CHANGES_TERMS,
      "INSERT INTO dp_tier(name, rate, epsilon, delta, delta_keys, accountant, filter_order,"
      " rate_limit, pure_limit, slack_limit, period, created_at)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " STATEMENT_NOW ")",
      "sddddsdddds", tier->name, tier->rate, tier->epsilon, tier->delta, tier->delta_keys,
      tier->accountant->name, tier->filter_order, tier->rate_limit, tier->pure_limit,
      tier->slack_limit, tier->period);
  statement_run(ledger, CHANGES_TERMS,
                "INSERT INTO dp_budget VALUES (?1, ?2, ?3, 0, ?2, 0, 0, 0, 0,"
                " 0, 0, 0, 0, 0, NULL, NULL, ?4)",
                "sddd", tier->name, tier->epsilon, tier->delta,
                wider_budget(tier, ledger_wider_factor(ledger)));
  for (int i = 0; i < RENYI_ORDERS; i++) {
    double alpha = renyi_order(i);
    statement_run(ledger, CHANGES_TERMS,
                  "INSERT INTO dp_order(tier, alpha, allowed, curve) VALUES (?, ?, ?, 0)", "sdd",
                  tier->name, alpha, tier->accountant->allowed(tier, alpha));
  }
  return !error_is_set(ledger->error);
}

static int same_tier(const struct ledger_tier *a, const struct ledger_tier *b) {
  return a->rate == b->rate && a->epsilon == b->epsilon && a->delta == b->delta &&
         a->delta_keys == b->delta_keys && a->accountant == b->accountant &&
         same_texts(a->period, b->period);
}

/* Returns 1 if the tier is new, and 0 if it exists or, with an error, conflicts with another
** one. */
static int tier_is_new(struct ledger *ledger, const struct ledger_tier *tier,
                       const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, tier->name) == 0)
      return same_tier(tier, &tiers[i])
                 ? 0
                 : ledger_fail(ledger,
                               "tier '%s' exists with other parameters (tiers are immutable: "
                               "choose another name)",
                               tier->name);
    if (tiers[i].rate == tier->rate)
      return ledger_fail(ledger,
                         "tier '%s' has the same rate %g (rates order the tiers: choose "
                         "another)",
                         tiers[i].name, tier->rate);
  }
  return !error_is_set(ledger->error);
}

/* ---- the page of a tier ---------------------------------------------------------------------- */

static const char delete_page[] = "DELETE FROM dp_page WHERE tier IS ?";

int ledger_page_set(struct ledger *ledger, const char *tier, const char *options) {
  struct ledger_tier *tiers = 0;
  int count = 0, is_empty = strcmp(options, "{}") == 0;
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger) && ledger_tiers(ledger, &tiers, &count) &&
      (!tier || ledger_tier_find(ledger, tiers, count, tier) >= 0)) {
    /* A tier that is NULL stands for the page of all tiers. */
    sqlite3_stmt *row =
        statement_bind(ledger, "SELECT options FROM dp_page WHERE tier IS ?", "s", tier);
    char *old = statement_row(ledger, row) ? column_copy(ledger, row, 0) : 0;
    int differs = old ? strcmp(old, options) != 0 : !is_empty; /* the same ones change nothing */
    if (differs && (!old || statement_run(ledger, CHANGES_TERMS, delete_page, "s", tier)) &&
        !is_empty)
      statement_run(ledger, CHANGES_TERMS, "INSERT INTO dp_page VALUES (?, ?)", "ss", tier,
                    options);
    sqlite3_free(old);
  }
  ledger_tiers_free(tiers, count);
  return ledger_commit(ledger);
}

/* ---- dropping -------------------------------------------------------------------------------- */

/* Fails if a grant reserves a part of the tier's budget, or if a release, even a failed one, was
** ever charged, published or stored at it. */
static int tier_is_unused(struct ledger *ledger, const char *name) {
  sqlite3_stmt *row =
      statement_bind(ledger, "SELECT grant_name FROM dp_reserve WHERE tier = ? LIMIT 1", "s", name);
  if (statement_row(ledger, row))
    ledger_fail(ledger, "grant '%s' reserves a part of the budget of tier '%s', which stays",
                column_text(ledger, row, 0), name);
  row = statement_bind(ledger,
                       "SELECT release FROM dp_charge WHERE tier = ?1"
                       " UNION ALL SELECT release FROM dp_publication WHERE tier = ?1"
                       " UNION ALL SELECT release FROM dp_point WHERE tier = ?1"
                       " LIMIT 1",
                       "s", name);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  ledger_fail(ledger,
              "tier '%s' has been charged for release '%s', and stays (only a tier that was never "
              "charged can be dropped)",
              name, column_text(ledger, row, 0));
  return 0;
}

int ledger_tier_drop(struct ledger *ledger, const char *name) {
  struct ledger_tier *tiers = 0;
  int count = 0;
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger) && ledger_tiers(ledger, &tiers, &count) &&
      ledger_tier_find(ledger, tiers, count, name) >= 0 && tier_is_unused(ledger, name) &&
      statement_run(ledger, CHANGES_TERMS, "DELETE FROM dp_order WHERE tier = ?", "s", name) &&
      statement_run(ledger, CHANGES_TERMS, "DELETE FROM dp_budget WHERE tier = ?", "s", name) &&
      statement_run(ledger, CHANGES_TERMS, delete_page, "s", name) &&
      statement_run(ledger, CHANGES_TERMS, "DELETE FROM dp_tier WHERE name = ?", "s", name))
    all_budgets_left(ledger);
  ledger_tiers_free(tiers, count);
  return ledger_commit(ledger);
}

int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *given) {
  struct ledger_tier tier = *given, *tiers = 0;
  int count = 0, entered;
  if (!ledger_begin(ledger)) return 0;
  if (ledger_check_name(ledger, "name", tier.name) && seal_trust_books(ledger) &&
      ledger_tiers(ledger, &tiers, &count) && tier_is_new(ledger, &tier, tiers, count) &&
      tier_make(ledger, &tier, tiers, count) && store_tier(ledger, &tier)) {
    const struct ledger_tier *outer = tier_outside(&tier, tiers, count);
    if ((!outer || (charge_inherited(ledger, &tier, outer->name) &&
                    reserves_inherit(ledger, &tier, outer))) &&
        periods_enter(ledger, tier.rate, &entered))
      all_budgets_left(ledger);
  }
  ledger_tiers_free(tiers, count);
  return ledger_commit(ledger);
}
