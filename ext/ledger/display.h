/* display.h: the column display of dp_value. */
#ifndef DIFFUSE_LEDGER_DISPLAY_H
#define DIFFUSE_LEDGER_DISPLAY_H

#include "ledger/handle.h"

/*
** Registers the SQL function display(kind, lo, hi, clip, size, grid, centre, key, stddev, value,
** low, high) on a private connection. stddev is NULL for the ends of bounds and for a symbol, which
** is in `key`.
*/
int display_register(struct ledger *ledger, sqlite3 *db);

#endif
