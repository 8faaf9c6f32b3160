/*
** wider.c: see wider.h.
** Tests: tests/ledger/test_within.py
*/
#include "ledger/wider.h"

#include <math.h>

#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "ledger/handle.h"
#include "ledger/statements.h"
#include "math/cost.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_factor = {
    .sql = "SELECT factor FROM dp_policy WHERE wider IS NOT NULL"};
static const struct statement update_wider_epsilon = {
    .sql = "UPDATE dp_budget SET wider_epsilon = ?2 WHERE tier = ?1", .changes = CHANGES_TERMS};

double ledger_wider_factor(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, &select_factor, "");
  return statement_row(ledger, row) ? sqlite3_column_double(row, 0) : 0;
}

/*
** The accountant 'gdp' sets aside (1 + e^epsilon) slack out of delta, for the epsilon of the tier.
** A larger epsilon of the wider unit needs more, so the loop raises it until what is set aside
** suffices. The same releases also have a zCDP rate, whose epsilon needs no slack.
*/
static double of_rate(const struct ledger_tier *tier, double rate) {
  struct ledger_tier seen = *tier;
  double epsilon = zcdp_epsilon(rate, tier->delta - tier->delta_keys);
  for (int i = 0; i < 100; i++) {
    double next = tier->accountant->epsilon(&seen, rate, 0);
    if (next <= seen.epsilon) return fmin(next, published_up(epsilon));
    seen.epsilon = next * (1 + 0x1p-44);
  }
  return published_up(epsilon);
}

double wider_epsilon(const struct ledger_tier *tier, double rate, double pure, double factor) {
  if (!(factor > 0)) return NAN;
  if (!(rate > 0)) return published_up(factor * pure);
  return tier->accountant->has_delta ? of_rate(tier, factor * factor * rate) : INFINITY;
}

int wider_spent(struct ledger *ledger, const struct ledger_tier *tier, double *epsilon) {
  struct budget spent;
  *epsilon = NAN;
  if (!budget_read(ledger, tier->name, &spent)) return 0;
  double rate = total_up(spent.rate);
  *epsilon = wider_epsilon(tier, rate, rate > 0 ? 0 : spent.pure, ledger_wider_factor(ledger));
  return 1;
}

double wider_budget(const struct ledger_tier *tier, double factor) {
  int has_rates = tier->accountant->covers_rates;
  return wider_epsilon(tier, has_rates ? tier->rate_limit : 0, has_rates ? 0 : tier->epsilon,
                       factor);
}

int wider_budgets_write(struct ledger *ledger) {
  struct ledger_tier *tiers = 0;
  int count = 0;
  double factor = ledger_wider_factor(ledger);
  int going = ledger_tiers(ledger, &tiers, &count);
  for (int i = 0; i < count && going; i++)
    going = statement_run(ledger, &update_wider_epsilon, "sd", tiers[i].name,
                          wider_budget(&tiers[i], factor));
  ledger_tiers_free(tiers, count);
  return going;
}
