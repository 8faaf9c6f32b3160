/*
** facts.h: the facts that one audience may know, as tables of a database in memory.
**
** Reports and exports read this database and nothing else. They have no access to the ledger, so
** they cannot show a fact that the ledger did not hand out (ledger/audience.c).
*/
#ifndef DIFFUSE_REPORT_FACTS_H
#define DIFFUSE_REPORT_FACTS_H

#include <sqlite3ext.h>

#include "base/error.h"

struct ledger;

/*
** Copies the tables of the extension (dp_tier, dp_value and so on) with the rows that the audience
** of the ledger may see, and adds three tables:
**
**   certificate(document)              the certificate, JSON
**   spending(tier, period, day, share) for each visible tier, the share of its budget that was
**                                      spent by the end of a day; if the tier has periods, the
**                                      share of the period's budget
**   corrected(release, day)            the names of figures that were published and discarded, with
**                                      the day of the last publication
**
** Call facts_open() inside a transaction of the ledger. The caller closes the database with
** sqlite3_close(). Returns null with an error on failure.
*/
sqlite3 *facts_open(struct ledger *ledger, const char *certificate, struct error *error);

/*
** Prepares a statement on the facts. Returns null with an error on failure. If there is an error
** already, does nothing and returns null.
*/
sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error);

/*
** Steps a statement. Returns 1 if there is a row. Returns 0 at the end, after a failure (with an
** error), and if there is an error already. Accepts null and returns 0 for it.
*/
int facts_row(sqlite3_stmt *statement, struct error *error);

/* Returns the text in a column, or "" for NULL. It is valid until the next step. */
const char *facts_text(sqlite3_stmt *statement, int column);

#endif
