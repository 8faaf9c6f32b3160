/* period.h: budgets by period. */
#ifndef DIFFUSE_LEDGER_PERIOD_H
#define DIFFUSE_LEDGER_PERIOD_H

#include <stddef.h>

#include "ledger/handle.h"

/*
** Returns the largest number of periods of an outer tier that can overlap one period of an inner
** tier. Null means a period that never ends. Returns 0 if there is no largest number, because the
** inner period never ends and the outer periods do.
*/
int period_overlaps(const char *inner, const char *outer);

/*
** Starts a period of a tier. The period begins on the day `start`. The totals of the tier become 0.
*/
int period_enter(struct ledger *ledger, const char *tier, const char *start);

/*
** Starts the current period of every tier whose rate is at least `rate` and whose period is over.
** Sets *entered to 1 if there was such a tier. The caller must then update releases_left.
*/
int periods_enter(struct ledger *ledger, double rate, int *entered);

/*
** If a tier has a period, appends three members to a JSON object. `period` is the kind of period.
** `per_period` is the budget of one period. `all_periods` is the guarantee for all periods until
** now: the epsilon and delta if the whole budget was spent in each of these periods.
*/
void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json);

/*
** Writes the name of the tier's current period, such as 'January 2026', to `name`. Writes '' if the
** tier has no periods.
*/
void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size);

/*
** Returns the first day of the period that a tier has entered, or null if the tier has no periods.
** The caller calls sqlite3_free().
*/
char *period_entered(struct ledger *ledger, const char *tier);

/*
** Returns whether a period of the tier can begin on the day `start`, which is null for a tier
** without periods.
*/
int period_begins_on(struct ledger *ledger, const struct ledger_tier *tier, const char *start);

/*
** PERIOD_START is SQL for the first day of the period that contains a time. PERIOD_END is SQL for
** the first day of the next period. `kind` is the kind of period, such as 'month'. All days are in
** UTC, and weeks begin on Monday (ISO 8601). Both results are NULL if the kind is NULL.
*/
#define PERIOD_START(kind, time)                                                                   \
  "(CASE " kind " WHEN 'day' THEN date(" time ") WHEN 'week' THEN"                                 \
  " date(" time ", '-6 days', 'weekday 1') WHEN 'month' THEN date(" time ", 'start of month')"     \
  " WHEN 'quarter' THEN date(" time ", 'start of month', '-' ||"                                   \
  " ((strftime('%m', " time ") - 1) % 3) || ' months')"                                            \
  " WHEN 'year' THEN date(" time ", 'start of year') END)"
#define PERIOD_END(kind, start)                                                                    \
  "date(" start ", CASE " kind " WHEN 'day' THEN '+1 day' WHEN 'week' THEN '+7 days'"              \
  " WHEN 'month' THEN '+1 month' WHEN 'quarter' THEN '+3 months' WHEN 'year' THEN '+1 year' END)"

/* SQL for the kind of period of the tier ?1. */
#define TIER_PERIOD "(SELECT period FROM dp_tier WHERE name = ?1)"

#endif
