/*
** tiers.c: reads tiers (dp_tier). tier.c creates and drops them.
** Tests: tests/ledger/test_tiers.py
*/
#include <math.h>
#include <string.h>

#include "base/known_names.h"
#include "ledger/accountant.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_tiers = {
    .sql = "SELECT name, rate, epsilon, delta, delta_keys, accountant, filter_order, rate_limit,"
           " pure_limit, slack_limit, period FROM dp_tier ORDER BY rate DESC"};

void ledger_tiers_free(struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    sqlite3_free(tiers[i].name);
    sqlite3_free(tiers[i].period);
  }
  sqlite3_free(tiers);
}

int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count) {
  *tiers = 0;
  *count = 0;
  sqlite3_stmt *row = statement_bind(ledger, &select_tiers, "");
  while (statement_row(ledger, row)) {
    if (!ledger_make_room(ledger, tiers, *count, sizeof **tiers)) break;
    struct ledger_tier *tier = &(*tiers)[(*count)++];
    *tier = (struct ledger_tier){.name = column_copy(ledger, row, 0),
                                 .rate = column_number(row, 1),
                                 .epsilon = column_number(row, 2),
                                 .delta = column_number(row, 3),
                                 .delta_keys = column_number(row, 4),
                                 .accountant = accountant_find(column_text(ledger, row, 5)),
                                 .filter_order = column_number(row, 6),
                                 .rate_limit = column_number(row, 7),
                                 .pure_limit = column_number(row, 8),
                                 .slack_limit = column_number(row, 9),
                                 .period = column_copy(ledger, row, 10)};
    /* If the name is unknown, somebody has edited the file. dp_verify() reports this. */
    if (!tier->accountant) tier->accountant = accountants[0];
    if (isnan(tier->filter_order)) tier->filter_order = 0; /* curves do not count */
    if (!tier->name || !(tier->rate > 0)) ledger_fail_damaged(ledger, "dp_tier");
  }
  return !error_is_set(ledger->error);
}

int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name) {
  if (error_is_set(ledger->error)) return -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(tiers[i].name, name) == 0) return i;
  }
  struct known_names known = {.asked = name};
  for (int i = 0; i < count; i++) known_names_add(&known, tiers[i].name);
  known_names_fail(&known, ledger->error,
                   count ? "unknown tier%s (%sknown tiers: %s)"
                         : "unknown tier (there are none: create one with dp_tier())");
  return -1;
}
