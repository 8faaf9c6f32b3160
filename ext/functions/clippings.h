/* clippings.h: sentences about what clipping did, for the page of dp_report(). */
#ifndef DIFFUSE_FUNCTIONS_CLIPPINGS_H
#define DIFFUSE_FUNCTIONS_CLIPPINGS_H

#include "ledger/ledger.h"

/*
** Adds a table clipping(release, tier, summary) to the facts of an audience (report/facts.h), with
** a sentence for each publication that counted clipped units. Call clippings_add() inside a
** transaction of the ledger. Returns 1, or 0 with the error set.
*/
int clippings_add(sqlite3 *facts, struct ledger *ledger, struct error *error);

#endif
