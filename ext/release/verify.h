/* verify.h: checks that publications follow from their points and charges. */
#ifndef DIFFUSE_RELEASE_VERIFY_H
#define DIFFUSE_RELEASE_VERIFY_H

#include "release/session.h"

/*
** Makes all checks of dp_verify(): checks the accounts and the seals of the ledger (ledger/), and
** compares every publication with the stored point from which it was computed. Returns 'ok' or the
** first discrepancy, or null after setting the ledger's error. The caller calls sqlite3_free(). If
** the ledger is open for an audience (ledger/audience.h), the discrepancy or error only says that
** verification failed. Call session_verify() inside a transaction.
*/
char *session_verify(struct session *session);

/* Tells the ledger the properties of a mechanism. */
describe_mechanism mechanism_describe;

#endif
