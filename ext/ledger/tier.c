/* tier.c: reads, creates and drops tiers (dp_tier). */
#include <math.h>
#include <string.h>

#include "ledger/accountant.h"
#include "ledger/internal.h"
#include "math/renyi.h"

SQLITE_EXTENSION_INIT3

void ledger_tiers_free(struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) columns_clear(&columns_tier, &tiers[i]);
  sqlite3_free(tiers);
}

int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count) {
  *tiers = 0;
  *count = 0;
  sqlite3_stmt *row = statement_bind(ledger, TIER_LIST, "");
  while (statement_row(ledger, row)) {
    struct ledger_tier *grown =
        sqlite3_realloc64(*tiers, sizeof **tiers * (sqlite3_uint64)(*count + 1));
    if (!grown) {
      ledger_fail(ledger, "out of memory");
      break;
    }
    *tiers = grown;
    columns_read(ledger, row, &columns_tier, &grown[*count]);
    if (isnan(grown[*count].filter_order)) grown[*count].filter_order = 0; /* curves do not count */
    if (!grown[(*count)++].name || !(grown[*count - 1].rate > 0))
      ledger_fail_damaged(ledger, "dp_tier");
  }
  return !error_is_set(ledger->error);
}

int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name) {
  if (error_is_set(ledger->error)) return -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, name) == 0) return i;
  }
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) sqlite3_str_appendf(known, "%s%s", i ? ", " : "", tiers[i].name);
  char *list = sqlite3_str_finish(known);
  if (count) {
    ledger_fail(ledger, "unknown tier (known tiers: %s)", list ? list : "");
  } else {
    ledger_fail(ledger, "unknown tier (there are none: create one with dp_tier())");
  }
  sqlite3_free(list);
  return -1;
}

/* ---- creating a tier ------------------------------------------------------------------------- */

static int store_tier(struct ledger *ledger, const struct ledger_tier *tier) {
  struct budget_row budget = {.tier = tier->name,
                              .epsilon = tier->epsilon,
                              .delta = tier->delta,
                              .remaining_epsilon = tier->epsilon};
  statement_insert(ledger, TIER_INSERT, tier);
  statement_insert(ledger, BUDGET_INSERT, &budget);
  for (int i = 0; i < RENYI_ORDERS; i++) {
    double alpha = renyi_order(i);
    struct order_row row = {tier->name, alpha, tier->accountant->allowed(tier, alpha), 0};
    statement_insert(ledger, ORDER_INSERT, &row);
  }
  return !error_is_set(ledger->error);
}

static int same_tier(const struct ledger_tier *a, const struct ledger_tier *b) {
  return a->rate == b->rate && a->epsilon == b->epsilon && a->delta == b->delta &&
         a->delta_keys == b->delta_keys && a->accountant == b->accountant &&
         (a->period ? b->period && strcmp(a->period, b->period) == 0 : !b->period);
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
  sqlite3_stmt *row = statement_bind(ledger, TIER_DROPPED, "s", tier->name);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  sqlite3_reset(row);
  return ledger_fail(ledger,
                     "tier '%s' was dropped (the name of a tier is never used again: choose "
                     "another)",
                     tier->name);
}

/* Updates releases_left of all tiers, including the new one. */
static int refresh_left(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count)) budgets_left(ledger, tiers, count);
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

static int create_tier(struct ledger *ledger, struct ledger_tier tier) {
  struct ledger_tier *tiers;
  int count, entered;
  if (ledger_tiers(ledger, &tiers, &count) && tier_is_new(ledger, &tier, tiers, count) &&
      tier_make(ledger, &tier, tiers, count) && store_tier(ledger, &tier)) {
    const struct ledger_tier *outer = tier_outside(&tier, tiers, count);
    if ((!outer || (charge_inherited(ledger, &tier, outer->name) &&
                    reserves_inherit(ledger, &tier, outer))) &&
        periods_enter(ledger, tier.rate, &entered))
      refresh_left(ledger);
  }
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

/*
** Returns whether a tier may be dropped. Sets an error if a grant reserves a part of its budget, or
** if a release, even a failed one, was ever charged, published or stored at it.
*/
static int tier_is_unused(struct ledger *ledger, const char *name) {
  sqlite3_stmt *row = statement_bind(ledger, TIER_RESERVED, "s", name);
  if (statement_row(ledger, row))
    ledger_fail(ledger, "grant '%s' reserves a part of the budget of tier '%s', which stays",
                (const char *)sqlite3_column_text(row, 0), name);
  sqlite3_reset(row);
  row = statement_bind(ledger, TIER_USED, "s", name);
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  ledger_fail(ledger,
              "tier '%s' has been charged for release '%s', and stays (only a tier that was never "
              "charged can be dropped)",
              name, (const char *)sqlite3_column_text(row, 0));
  sqlite3_reset(row);
  return 0;
}

static void drop_tier(struct ledger *ledger, const char *name) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count) && ledger_tier_find(ledger, tiers, count, name) >= 0 &&
      tier_is_unused(ledger, name) && statement_run(ledger, TIER_DROP, "s", name) &&
      statement_run(ledger, ORDERS_DROP, "s", name) &&
      statement_run(ledger, BUDGET_DROP, "s", name))
    refresh_left(ledger);
  ledger_tiers_free(tiers, count);
}

int ledger_tier_drop(struct ledger *ledger, const char *name) {
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger)) drop_tier(ledger, name);
  return ledger_commit(ledger);
}

int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *tier) {
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger)) create_tier(ledger, *tier);
  return ledger_commit(ledger);
}
