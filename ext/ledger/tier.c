/* tier.c: creates and drops tiers (dp_tier). Tests: tests/ledger/test_tiers.py */
#include <string.h>

#include "ledger/accountant.h"
#include "ledger/charge.h"
#include "ledger/period.h"
#include "ledger/reserves.h"
#include "ledger/seal.h"
#include "ledger/statements.h"
#include "ledger/tier_check.h"
#include "math/renyi.h"

SQLITE_EXTENSION_INIT3

static const struct statement insert_tier = {
    .sql = "INSERT INTO dp_tier(name, rate, epsilon, delta, delta_keys, accountant, filter_order,"
           " rate_limit, pure_limit, slack_limit, period, created_at)"
           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " STATEMENT_NOW ")",
    .changes = CHANGES_TERMS};
static const struct statement find_use_of_tier = {
    .sql = "SELECT release FROM dp_charge WHERE tier = ?1 UNION ALL"
           " SELECT release FROM dp_publication WHERE tier = ?1 UNION ALL"
           " SELECT release FROM dp_point WHERE tier = ?1 LIMIT 1"};
static const struct statement find_reserve_at_tier = {
    .sql = "SELECT grant_name FROM dp_reserve WHERE tier = ? LIMIT 1"};
static const struct statement delete_tier = {.sql = "DELETE FROM dp_tier WHERE name = ?",
                                             .changes = CHANGES_TERMS};
static const struct statement insert_budget = {
    .sql =
        "INSERT INTO dp_budget VALUES (?1, ?2, ?3, 0, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL)",
    .changes = CHANGES_TERMS};
static const struct statement delete_budget = {.sql = "DELETE FROM dp_budget WHERE tier = ?",
                                               .changes = CHANGES_TERMS};
static const struct statement insert_order = {
    .sql = "INSERT INTO dp_order(tier, alpha, allowed, curve) VALUES (?, ?, ?, 0)",
    .changes = CHANGES_TERMS};
static const struct statement delete_orders = {.sql = "DELETE FROM dp_order WHERE tier = ?",
                                               .changes = CHANGES_TERMS};

static int store_tier(struct ledger *ledger, const struct ledger_tier *tier) {
  statement_run(ledger, &insert_tier, "sddddsdddds", tier->name, tier->rate, tier->epsilon,
                tier->delta, tier->delta_keys, tier->accountant->name, tier->filter_order,
                tier->rate_limit, tier->pure_limit, tier->slack_limit, tier->period);
  statement_run(ledger, &insert_budget, "sdd", tier->name, tier->epsilon, tier->delta);
  for (int i = 0; i < RENYI_ORDERS; i++) {
    double alpha = renyi_order(i);
    statement_run(ledger, &insert_order, "sdd", tier->name, alpha,
                  tier->accountant->allowed(tier, alpha));
  }
  return !error_is_set(ledger->error);
}

static int same_tier(const struct ledger_tier *a, const struct ledger_tier *b) {
  return a->rate == b->rate && a->epsilon == b->epsilon && a->delta == b->delta &&
         a->delta_keys == b->delta_keys && a->accountant == b->accountant &&
         same_texts(a->period, b->period);
}

/*
** Returns 1 if the tier is new. Returns 0 if the same tier exists already. Sets an error and
** returns 0 if the tier conflicts with another tier.
*/
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

/*
** Returns whether a tier may be dropped. Sets an error if a grant reserves a part of its budget, or
** if a release, even a failed one, was ever charged, published or stored at it.
*/
static int tier_is_unused(struct ledger *ledger, const char *name) {
  sqlite3_stmt *row = statement_bind(ledger, &find_reserve_at_tier, "s", name);
  if (statement_row(ledger, row))
    ledger_fail(ledger, "grant '%s' reserves a part of the budget of tier '%s', which stays",
                column_text(ledger, row, 0), name);
  row = statement_bind(ledger, &find_use_of_tier, "s", name);
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
      statement_run(ledger, &delete_orders, "s", name) &&
      statement_run(ledger, &delete_budget, "s", name) &&
      statement_run(ledger, &delete_tier, "s", name))
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
