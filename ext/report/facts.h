/*
** facts.h: the facts that one audience may know, as tables of a database in memory.
**
** Reports and exports read this database and nothing else. They have no access to the ledger, so
** they cannot show a fact that the ledger did not hand out (ledger/audience.h).
*/
#ifndef DIFFUSE_REPORT_FACTS_H
#define DIFFUSE_REPORT_FACTS_H

#include <sqlite3ext.h>

#include "base/error.h"

struct ledger;

/*
** Copies the tables that the host connection sees (dp_tier, dp_value and so on) as the audience of
** the ledger sees them, and adds two tables:
**
**   certificate(document)              the certificate, JSON
**   spending(tier, period, day, share) of each visible tier: the part of its budget (of the period,
**                                      if it has periods) that was spent by the end of a day
**
** Call it inside a transaction. The caller closes the database with facts_close(). Returns null
** with an error on failure.
*/
sqlite3 *facts_open(struct ledger *ledger, const char *certificate, struct error *error);
void facts_close(sqlite3 *facts);

/*
** Prepares a statement on the facts. Returns null with an error on failure, or if there is an error
** already.
*/
sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error);

/* Steps a statement: 1 for a row, 0 at the end or after a failure. Accepts null. */
int facts_row(sqlite3_stmt *statement, struct error *error);

#endif
