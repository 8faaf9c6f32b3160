/*
** pending.h: what a connection has drawn and not stored yet.
**
** An aggregate cannot tell at its end whether its rows all came, so what it draws is stored when
** the statement around it has ended (functions/statement_guard.h). Until then it is kept here, and
** the functions that read the ledger on the same connection see it as if it were stored.
*/
#ifndef DIFFUSE_RELEASE_PENDING_H
#define DIFFUSE_RELEASE_PENDING_H

#include "release/session.h"

/* Takes over what publish_draw() has drawn. 0: out of memory, and nothing is taken over. */
int pending_add(struct pending *pending, struct publication *publication);

/* Stores what a statement has drawn; what cannot be stored remains. */
void pending_keep(struct pending *pending);

/* Lets everything that a statement has drawn fail. */
void pending_revoke(struct pending *pending);

/* Forgets what is left. Those releases stay 'charged'. */
void pending_clear(struct pending *pending);

/*
** Stores what could not be stored when its statement ended, as far as that is possible now. Before
** the ledger is asked for a release.
*/
void pending_settle(struct session *session);

/*
** Begins a transaction that reads the ledger and is to be rolled back. This connection sees in it
** what it has drawn, as if that were stored.
*/
int pending_begin_reading(struct session *session);

#endif
