/*
** spending.c: lists how the budget of a tier was spent, day by day.
**
** Every charge at a tier follows from a publication at this tier or outside it, or from a release
** that failed there. The members of the tier can see the spent budget at any time, so they may also
** know the days of the charges.
** Tests: tests/ledger/test_periods.py, tests/report/test_report.py
*/
#include <math.h>
#include <string.h>

#include "ledger/curve.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_days = {
    .sql = "SELECT c.period, substr(at, 1, 10), c.rate, curve, filter_order, rate_limit"
           " FROM dp_charge c JOIN dp_tier ON name = tier WHERE tier = ?"
           " ORDER BY 1, 2, c.id"};

/*
** Returns the fraction of the tier's limit that a charge uses up. A curve counts as in
** ledger_charged_since().
*/
static double charge_share(struct ledger *ledger, sqlite3_stmt *row) {
  struct curve curve = curve_column(ledger, row, 3);
  double order = sqlite3_column_double(row, 4), limit = sqlite3_column_double(row, 5);
  double rate = sqlite3_column_double(row, 2);
  double beyond = curve.any ? curve.values[AT_FILTER] : 0;
  return (rate + (beyond > 0 && isfinite(order) && order > 0 ? beyond / order : beyond)) / limit;
}

int ledger_spending_read(struct ledger *ledger, const char *tier,
                         int (*take)(void *context, const struct ledger_spending *spending),
                         void *context) {
  char *period = 0, *day = 0;
  double share = 0;
  int going = 1;
  sqlite3_stmt *row = statement_bind(ledger, &select_days, "s", tier);
  while (going) {
    int more = statement_row(ledger, row);
    int same_period = more && strcmp(period ? period : "", column_text(row, 0)) == 0;
    if (day && !(same_period && strcmp(day, column_text(row, 1)) == 0))
      going = take(context, &(struct ledger_spending){tier, period, day, share}) ||
              ledger_fail(ledger, "out of memory");
    if (!more || !going) break;
    share = (same_period ? share : 0) + charge_share(ledger, row);
    sqlite3_free(period);
    sqlite3_free(day);
    period = column_copy(ledger, row, 0);
    day = column_copy(ledger, row, 1);
    going = day != 0;
  }
  if (row) sqlite3_reset(row);
  sqlite3_free(period);
  sqlite3_free(day);
  return !error_is_set(ledger->error);
}
