/*
** pending.h: the releases that a connection has drawn but not stored yet.
**
** When an aggregate ends, it cannot tell whether all its rows arrived. The result is therefore
** stored when the surrounding statement has ended (functions/statement_guard.h). Until then the
** session keeps the result here. Functions that read the ledger on the same connection see the
** result as if the ledger had stored it.
*/
#ifndef DIFFUSE_RELEASE_PENDING_H
#define DIFFUSE_RELEASE_PENDING_H

#include "release/session.h"

/* Takes over the result of publish_draw(). When out of memory, takes over nothing and returns 0. */
int pending_add(struct pending *pending, struct publication *publication);

/*
** Stores the releases that a statement has drawn, with one commit if possible. Keeps each release
** that could not be stored.
*/
void pending_keep(struct pending *pending);

/* Marks as failed all releases that a statement has drawn. */
void pending_revoke(struct pending *pending);

/* Forgets the remaining releases. They stay 'charged' in the ledger. */
void pending_clear(struct pending *pending);

/*
** Tries again to store the releases that could not be stored when their statement ended. Call
** pending_settle() before you ask the ledger for a release.
*/
void pending_settle(struct session *session);

/*
** Begins a transaction that reads the ledger; the caller must roll it back. In this transaction,
** the connection sees its pending releases as if they were stored. If one of them can no longer be
** stored, the connection sees none of them.
*/
int pending_begin_reading(struct session *session);

#endif
