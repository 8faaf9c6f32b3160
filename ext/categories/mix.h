/*
** mix.h: public Markov kernels send a stored release on to an outer tier: a category, reports, or
** the counts and sums of public groups (dp_mix).
**
** A kernel draws a new category from the last category, or a new report from each of the last
** reports. It never draws from earlier ones, because two draws from the same category together
** reveal more than either draw alone. A category is treated as the report of one row.
*/
#ifndef DIFFUSE_CATEGORIES_MIX_H
#define DIFFUSE_CATEGORIES_MIX_H

#include "release/publication.h"

/* Checks the publications up to a tier (verify() in release/procedure.h). */
int walk_verify(struct publication *publication, const struct ledger_publication *published);

/*
** Applies the kernel that is stored for a release of groups at a tier, if there is one (resend() in
** release/kinds.h).
*/
int groups_resend(const struct publication *publication, const char *tier, struct numbers *numbers);

/* Registers dp_mix(). Returns an SQLite result code. */
struct host;
struct sqlite3;
int mix_register(struct sqlite3 *db, struct host *host);

#endif
