/* releases_left.c: see releases_left.h. Tests: tests/functions/test_plan_values.py */
#include "ledger/releases_left.h"

#include <math.h>

#include "ledger/accountant.h"
#include "ledger/reserves.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement update_left = {
    .sql = "UPDATE dp_budget SET releases_left = ?2 WHERE tier = ?1", .changes = CHANGES_BUDGET};

int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at) {
  double least = 0x1p52;
  for (int k = 0; k <= at; k++) {
    const struct accountant *accountant = tiers[k].accountant;
    struct budget budget;
    struct ledger_tier room;
    if (!budget_read(ledger, tiers[k].name, &budget) || !reserves_room(ledger, &tiers[k], 0, &room))
      return -1;
    double left = total_left(accountant->total(&room, &budget), room.rate_limit);
    least = fmin(least, floor(left / accountant->cost_of_rate(tiers[at].rate)));
    if (accountant->draws_left) least = fmin(least, accountant->draws_left(&room, &budget));
  }
  return (int64_t)fmax(least, 0);
}

int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int at = 0; at < count && !error_is_set(ledger->error); at++)
    statement_run(ledger, &update_left, "si", tiers[at].name, releases_left(ledger, tiers, at));
  return !error_is_set(ledger->error);
}

int all_budgets_left(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count)) budgets_left(ledger, tiers, count);
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}
