/*
** life.h: the steps that all releases share: charge, collect, draw, store.
**
**   publish_begin()   checks, charges and commits; or answers from the ledger alone
**   (the caller collects rows)
**   publish_finish()  draws, stores the point and the values, and commits before it returns
**   publish_fail()    replaces publish_finish() when some rows did not arrive
**
** When an aggregate ends, it cannot tell whether all its rows arrived (statement_guard.h). It
** therefore draws with publish_draw(). The statement guard calls publish_keep() or publish_revoke()
** when the statement ends.
*/
#ifndef DIFFUSE_RELEASE_LIFE_H
#define DIFFUSE_RELEASE_LIFE_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Opens the ledger, checks that the ledger protects what the caller's rows describe (rows or
** units), and answers or charges. The caller must call publish_clear() afterwards, even after an
** error. Takes over the request's list of keys.
*/
int publish_begin(struct publication *publication, struct session *session,
                  struct request *request);

/* Publishes the totals and sets the answer. */
int publish_finish(struct publication *publication, const struct totals *totals);

/*
** Does the same in two steps. publish_draw() draws and answers, but stores nothing. Later
** publish_keep() stores the result, or publish_revoke() marks the release as failed. In between,
** the release is 'charged' in the ledger, and only memory holds the result.
*/
int publish_draw(struct publication *publication, const struct totals *totals);

/* Stores the result inside the caller's transaction. The caller must roll this transaction back. */
int publish_show(struct publication *publication);

/*
** Stores the result. Returns 1 when nothing is left to do: the result is stored, or another
** connection has discarded the release.
*/
int publish_keep(struct publication *publication);

/*
** Marks the release as failed. A failed release is never replayed or diffused, and its charge
** stays. If a refinement fails, nothing has been drawn. The release is then 'released' again, and
** earlier publications stay valid.
*/
void publish_fail(struct publication *publication);

/*
** Marks as failed the release that publish_draw() has drawn, even if it is a refinement. The
** statement has seen the value, so the charge must not pay for a second one.
*/
void publish_revoke(struct publication *publication);

/*
** Plans a release inside the caller's transaction, which the caller must roll back. Makes the
** charge, so that the caller can read it from the ledger. Finishes the release as if all totals
** were 0, so that the next plan can diffuse or refine it. Returns 1, or 0 with the reason in the
** ledger.
*/
int publish_plan(struct publication *publication, struct session *session, struct request *request);

/*
** dp_diffuse() and, with a kernel, dp_mix(): publishes a stored release at an outer tier. Reads no
** data.
*/
int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct markov_kernel *channel);

#endif
