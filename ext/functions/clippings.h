/* clippings.h: sentences about what clipping did, for the page of dp_report(). */
#ifndef DIFFUSE_FUNCTIONS_CLIPPINGS_H
#define DIFFUSE_FUNCTIONS_CLIPPINGS_H

#include "ledger/ledger.h"

/*
** Adds a table clipping(release, tier, low, high, words) to the facts of an audience
** (report/facts.h). Each publication that counted clipped units has a row. low and high are the
** ends of the interval of the share of clipped units, in percent, and words is what follows this
** share in the sentence of dp_clipping(). low and high are NULL if words is the whole sentence.
** Call clippings_add() inside a transaction of the ledger. Returns 1, or 0 with the error set.
*/
int clippings_add(sqlite3 *facts, struct ledger *ledger, struct error *error);

#endif
