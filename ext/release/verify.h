/* verify.h: whether what is published is what its points and charges make it. */
#ifndef DIFFUSE_RELEASE_VERIFY_H
#define DIFFUSE_RELEASE_VERIFY_H

#include "release/session.h"

/*
** Checks that every publication shows the point of its path. Returns null, or the first discrepancy
** (sqlite3_free). Call it inside a transaction. The ledger holds any error.
*/
char *releases_verify(struct session *session);

/* What the ledger has to know of the mechanisms. */
describe_mechanism mechanism_describe;

#endif
