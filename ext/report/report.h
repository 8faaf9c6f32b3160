/* report.h: the facts that one audience may know, and the file and the page that are made of them.
**
** The facts are tables of a database in memory. Pages and exports read this database and nothing
** else. They have no access to the ledger, so they cannot show a fact that the ledger did not hand
** out (ledger/views.c). */
#ifndef DIFFUSE_REPORT_REPORT_H
#define DIFFUSE_REPORT_REPORT_H

#include <sqlite3ext.h>

#include "base/error.h"
#include "ledger/ledger.h"

/* ---- the facts (facts.c) --------------------------------------------------------------------- */

/* Copies the tables of the extension (dp_tier, dp_value and so on) with the rows that the audience
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
** sqlite3_close(). Returns null with an error on failure. */
sqlite3 *facts_open(struct ledger *ledger, const char *certificate, struct error *error);

/* Prepares a statement on the facts. Returns null with an error on failure. If there is an error
** already, does nothing and returns null. */
sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error);

/* Steps a statement. Returns 1 if there is a row. Returns 0 at the end, after a failure (with an
** error), and if there is an error already. Accepts null and returns 0 for it. */
int facts_row(sqlite3_stmt *statement, struct error *error);

/* Runs statements. Returns 1, or 0 with an error. */
int facts_run(sqlite3 *facts, const char *sql, struct error *error);

/* ---- what is made of them -------------------------------------------------------------------- */

/* Writes the tables value, tier and certificate to a new file. The new file gets the owner and the
** permissions of the database. If the database is in memory, only the creator of the new file may
** use it. Never changes a file that exists, and refuses the names of the files of the database and
** the ledger. The file gets its name when it is complete and on the disk. If writing fails, there
** is no such file; if the process is killed, a file dp_export-*.part may stay in the folder.
** Returns 1, or 0 with an error. */
int export_write(sqlite3 *facts, const char *file, const struct ledger *ledger,
                 struct error *error);

/* Writes the page for the members of `tier`, or for the owner if `tier` is null. The page needs no
** network and no script, and the same facts give the same bytes. Returns the page, or null with an
** error. The caller calls sqlite3_free(). */
char *page_write(sqlite3 *facts, const char *tier, struct error *error);

/* Fills a template with the tables of a database (template.c says how a template looks). Returns
** the text, which the caller frees, or null with an error. */
char *template_fill(const char *text, sqlite3 *facts, struct error *error);

/* SQL for the names that the owner may give in the option "order": releases and series. */
extern const char page_names_sql[];

#endif
