/*
** audience.h: restricts the tables and the certificate to what the members of one tier (the
** audience) may know. They may know the publications at their own tier and at all tiers outside it,
** and everything that can be computed from these publications.
**
** Knowing an inner publication, or a decision that depends on an inner publication, costs the rate
** of the inner tier. An audience must therefore not learn how many inner releases there are, or
** when they were made. A column that is not listed in audience.c is NULL for every audience.
*/
#ifndef DIFFUSE_LEDGER_AUDIENCE_H
#define DIFFUSE_LEDGER_AUDIENCE_H

#include "ledger/ledger.h"

/*
** Returns the text of a SELECT that reads the host's columns of a table, restricted to the rows and
** columns that the members of a tier may know. The SQL parameter @tier is the name of the tier.
** `where` is "" or a further condition on these columns. The caller calls sqlite3_free(). Returns
** null if memory runs out.
*/
char *audience_select(const struct ledger_table *table, const char *where);

/*
** Returns a copy of a certificate (certificate.c) that contains only what the audience of a tier
** may know. The caller calls sqlite3_free(). Returns null on error. Call this function inside a
** transaction.
*/
char *audience_certificate(struct ledger *ledger, const char *certificate, const char *tier);

#endif
