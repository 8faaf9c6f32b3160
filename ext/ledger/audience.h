/*
** audience.h: what the members of one tier may know about the ledger: their own publications, those
** of the tiers outside it, and what follows from them.
**
** An inner publication, and every decision that depends on one, costs the inner rate. An audience
** must therefore not learn how many inner releases there are, or when they were made. A column that
** is not listed in audience.c is NULL for every audience.
*/
#ifndef DIFFUSE_LEDGER_AUDIENCE_H
#define DIFFUSE_LEDGER_AUDIENCE_H

#include "ledger/ledger.h"

/*
** The text of a SELECT of the columns of a table that the host sees, restricted to what the members
** of the tier @tier may know (sqlite3_free; null: out of memory). `where` is a condition on the
** columns, with the texts that bind to it, or "".
*/
char *audience_select(const struct ledger_table *table, const char *where);

/*
** Cuts a certificate (certificate.c) down to the audience of a tier, inside a transaction. Returns
** JSON (sqlite3_free), or null on error.
*/
char *audience_certificate(struct ledger *ledger, const char *certificate, const char *tier);

#endif
