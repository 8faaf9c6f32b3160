/* store.h: how store.c reads a row of dp_release, for dp_verify(). */
#ifndef DIFFUSE_LEDGER_STORE_H
#define DIFFUSE_LEDGER_STORE_H

#include "ledger/handle.h"

/*
** The columns that release_read() reads from a row, the first of them in column 0. release_read()
** checks nothing, sets the error if memory runs out, and returns the column after them.
*/
#define RELEASE_COLUMNS                                                                            \
  "id, name, kind, mechanism, clip, weight, centre, radius, theta, rho, lo, hi, grid, diagnose,"   \
  " until, least, stop, key_share, size, max_groups, quantiles, keys, ways, multipliers, "         \
  "periods, appended, secret,"                                                                     \
  " unit_type, model, dimension, granularity, shift, sensitivity, slack, options, sql, statement," \
  " fingerprint, state"
int release_read(struct ledger *ledger, sqlite3_stmt *row, struct ledger_release *release);

#endif
