/* display.h: SQL functions of private connections that write numbers, and words about them. */
#ifndef DIFFUSE_LEDGER_DISPLAY_H
#define DIFFUSE_LEDGER_DISPLAY_H

#include "ledger/handle.h"

/* SQL for what the numbers of the release `r` (a row of dp_release) are, in words. */
#define FIGURE_SQL                                                                                 \
  "figure(r.kind, r.clip, r.lo, r.hi, r.grid, r.centre, r.theta, r.max_groups, r.quantiles,"       \
  " r.ways, r.periods, r.mechanism,"                                                               \
  " (SELECT iif(protects = 'row', NULL, ifnull(unit, 'unit')) FROM dp_ledger))"

/*
** Registers SQL functions on a private connection: display(kind, lo, hi, clip, size, grid, centre,
** key, stddev, value, low, high), where stddev is NULL for the ends of bounds and for a symbol,
** which is in `key`; the function that FIGURE_SQL calls; and exact(x), the text of a number with
** all its digits (base/number.h), and "null" for NULL.
*/
int display_register(struct ledger *ledger, sqlite3 *db);

#endif
