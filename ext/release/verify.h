/* verify.h: checks that publications follow from their points and charges. */
#ifndef DIFFUSE_RELEASE_VERIFY_H
#define DIFFUSE_RELEASE_VERIFY_H

#include "release/session.h"

/*
** Everything that dp_verify() checks: the books, every publication against the point of its path,
** and the seals. Returns 'ok' or the first discrepancy (sqlite3_free), or null with the error in
** the ledger. Call it inside a transaction.
*/
char *session_verify(struct session *session);

/* Tells the ledger the properties of a mechanism. */
describe_mechanism mechanism_describe;

#endif
