/*
** life.h: the one core of every release, whatever feeds it rows: charge, collect, draw, store.
**
**   publish_begin()   checks, charges and commits; or answers from the ledger alone
**   (the caller collects rows)
**   publish_finish()  draws, stores the point and the values, commits; only then is there an answer
**   publish_fail()    instead of publish_finish(), when the rows did not all come
**
** An aggregate cannot tell at its end whether the rows all came (statement_guard.h): it draws with
** publish_draw(), and publish_keep() or publish_revoke() follow when its statement ends.
*/
#ifndef DIFFUSE_RELEASE_LIFE_H
#define DIFFUSE_RELEASE_LIFE_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Opens the ledger, checks that it protects what the caller's rows are, and answers or charges.
** publish_clear() afterwards either way. Takes over the
** request's list of keys.
*/
int publish_begin(struct publication *publication, struct session *session,
                  struct request *request);

/* Publishes the totals. Sets the answer. */
int publish_finish(struct publication *publication, const struct totals *totals);

/*
** The same in two steps: draws and answers, but stores nothing; publish_keep() stores it, or
** publish_revoke() makes it fail. The release is 'charged' in between, and what was drawn is in
** memory alone.
*/
int publish_draw(struct publication *publication, const struct totals *totals);

/* Stores it inside the caller's transaction, which must be rolled back. */
int publish_show(struct publication *publication);

/* Whether nothing is left to do: it is stored, or somebody has discarded it. */
int publish_keep(struct publication *publication);

/*
** Marks the release as failed: it is never replayed or diffused. The charge stays. A refinement
** that fails has drawn nothing: what was published before is good as ever.
*/
void publish_fail(struct publication *publication);

/*
** Marks as failed what publish_draw() has drawn. A refinement too: the statement has seen its
** value, so there must be no second one for its price.
*/
void publish_revoke(struct publication *publication);

/*
** What a release would do, inside the caller's transaction, which must be rolled back: the charge
** is made and can be read from the ledger, and the release is finished as if its data summed up to
** 0, so that the next plan can diffuse or refine it. Returns 1, or 0 with the reason in the ledger.
*/
int publish_plan(struct publication *publication, struct session *session, struct request *request);

/*
** dp_diffuse() and, with a channel, dp_mix(): publishes a stored release at an outer tier. Reads no
** data.
*/
int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct markov_kernel *channel);

#endif
