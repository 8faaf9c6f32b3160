/*
** mix.h: dp_mix(), which sends a stored release on by a public Markov kernel: a category, reports,
** or the counts and sums of public groups.
*/
#ifndef DIFFUSE_CATEGORIES_MIX_H
#define DIFFUSE_CATEGORIES_MIX_H

#include "release/publication.h"

struct host;
struct sqlite3;

/*
** Applies the kernel that is stored for a release of groups at a tier, if there is one (resend() in
** release/room.h).
*/
int groups_resend(const struct publication *publication, const char *tier, struct numbers *numbers);

/* Registers dp_mix(). Returns an SQLite result code. */
int mix_register(struct sqlite3 *db, struct host *host);

#endif
