/*
** spending.c: lists how the budget of a tier was spent, day by day.
**
** Every charge at a tier follows from a publication at this tier or outside it, or from a release
** that failed there. The members of the tier can see the spent budget at any time, so they may also
** know the days of the charges.
** Tests: tests/ledger/test_periods.py, tests/report/test_report.py
*/
#include <string.h>

#include "ledger/budget.h"
#include "ledger/reserves.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_days = {
    .sql = "SELECT period, substr(at, 1, 10), rate, curve"
           " FROM dp_charge WHERE tier = ? ORDER BY 1, 2, id"};

static int days_read(struct ledger *ledger, const struct ledger_tier *tier,
                     int (*take)(void *context, const struct ledger_spending *spending),
                     void *context) {
  char *period = 0, *day = 0;
  struct budget spent = {0};
  int going = 1;
  sqlite3_stmt *row = statement_bind(ledger, &select_days, "s", tier->name);
  while (going) {
    int more = statement_row(ledger, row);
    int same_period = more && strcmp(period ? period : "", column_text(ledger, row, 0)) == 0;
    if (day && !(same_period && strcmp(day, column_text(ledger, row, 1)) == 0))
      going = take(context,
                   &(struct ledger_spending){tier->name, period, day, budget_used(tier, &spent)}) ||
              ledger_fail(ledger, "out of memory");
    if (!more || !going) break;
    struct payment payment = {.rate = {sqlite3_column_double(row, 2), 0},
                              .curve = curve_column(ledger, row, 3)};
    if (!same_period) spent = (struct budget){0};
    spent = budget_after(&spent, &payment, 0);
    sqlite3_free(period);
    sqlite3_free(day);
    period = column_copy(ledger, row, 0);
    day = column_copy(ledger, row, 1);
    going = day != 0;
  }
  sqlite3_free(period);
  sqlite3_free(day);
  return !error_is_set(ledger->error);
}

int ledger_spending_read(struct ledger *ledger, const char *tier,
                         int (*take)(void *context, const struct ledger_spending *spending),
                         void *context) {
  struct ledger_tier *tiers, room;
  int count;
  ledger_tiers(ledger, &tiers, &count);
  int at = ledger_tier_find(ledger, tiers, count, tier);
  int done = at >= 0 && reserves_room(ledger, &tiers[at], &tiers[at], &room);
  if (done) tiers[at].pure_limit = room.pure_limit; /* a tier with a grant has one limit */
  done = done && days_read(ledger, &tiers[at], take, context);
  ledger_tiers_free(tiers, count);
  return done;
}
