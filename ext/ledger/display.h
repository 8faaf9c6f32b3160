/* display.h: SQL functions of private connections that write numbers. */
#ifndef DIFFUSE_LEDGER_DISPLAY_H
#define DIFFUSE_LEDGER_DISPLAY_H

#include "ledger/handle.h"

/*
** Registers the SQL function display(kind, lo, hi, clip, size, grid, centre, key, stddev, value,
** low, high) on a private connection. stddev is NULL for the ends of bounds and for a symbol, which
** is in `key`. Also registers exact(x), the text of a number with all its digits (base/number.h),
** and "null" for NULL.
*/
int display_register(struct ledger *ledger, sqlite3 *db);

#endif
