/* verify.h: checks that publications follow from their points and charges. */
#ifndef DIFFUSE_RELEASE_VERIFY_H
#define DIFFUSE_RELEASE_VERIFY_H

#include "release/session.h"

/*
** Checks that every publication shows the point of its path. Returns null, or the first discrepancy
** (free it with sqlite3_free()). Call it inside a transaction. The ledger holds any error.
*/
char *releases_verify(struct session *session);

/* Describes the mechanisms to the ledger. */
describe_mechanism mechanism_describe;

#endif
