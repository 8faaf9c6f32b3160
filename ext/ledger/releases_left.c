/* releases_left.c: see releases_left.h. Tests: tests/functions/test_plan_values.py */
#include "ledger/releases_left.h"

#include <math.h>

#include "ledger/accountant.h"
#include "ledger/reserves.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement update_left = {
    .sql = "UPDATE dp_budget SET releases_left = ?2 WHERE tier = ?1", .changes = CHANGES_BUDGET};

/* Returns the number of further releases of this rate that one tier can afford. */
static double bearable(const struct ledger_tier *tier, const struct budget *budget, double rate) {
  const struct accountant *accountant = tier->accountant;
  double left = total_left(accountant->total(tier, budget), tier->rate_limit);
  left = floor(left / accountant->cost_of_rate(rate));
  return accountant->draws_left ? fmin(left, accountant->draws_left(tier, budget)) : left;
}

int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at) {
  double left = 0x1p52;
  for (int k = 0; k <= at; k++) {
    struct budget budget;
    struct ledger_tier room;
    if (!budget_read(ledger, tiers[k].name, &budget) || !reserves_room(ledger, &tiers[k], &room))
      return -1;
    left = fmin(left, bearable(&room, &budget, tiers[at].rate));
  }
  return (int64_t)fmax(left, 0);
}

int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int at = 0; at < count && !error_is_set(ledger->error); at++)
    statement_run(ledger, &update_left, "si", tiers[at].name, releases_left(ledger, tiers, at));
  return !error_is_set(ledger->error);
}
