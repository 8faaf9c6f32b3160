/*
** touched.h: the subjects that the open transaction changes. Each statement that writes says which
** subject it changes (statements.h), and the commit seals these subjects (seal.c).
*/
#ifndef DIFFUSE_LEDGER_TOUCHED_H
#define DIFFUSE_LEDGER_TOUCHED_H

#include "ledger/handle.h"

/* The subject of a release is its id, which is above 0. These are the other subjects. */
#define SEAL_TERMS  0    /* dp_ledger, dp_tier, dp_policy and dp_grant */
#define SEAL_ORDERS (-1) /* dp_order.allowed */

/* Records that the open transaction changes a subject, so that the commit seals this subject. */
void touched_add(struct ledger *ledger, int64_t subject);

/* Returns whether the open transaction changes a subject. */
int touched_has(const struct ledger *ledger, int64_t subject);

/* Forgets the records after the transaction. */
void touched_forget(struct ledger *ledger);

#endif
