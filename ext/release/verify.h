/* verify.h: checks that publications follow from their points and charges. */
#ifndef DIFFUSE_RELEASE_VERIFY_H
#define DIFFUSE_RELEASE_VERIFY_H

#include "release/session.h"

/*
** Checks that every publication shows the point of its path. Returns null, or the first
** discrepancy, which the caller frees with sqlite3_free(). Call releases_verify() inside a
** transaction. Any error is in the ledger.
*/
char *releases_verify(struct session *session);

/* Tells the ledger the properties of a mechanism. */
describe_mechanism mechanism_describe;

#endif
