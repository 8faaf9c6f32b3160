/*
** publish.h: the steps that all releases share: charge, collect, draw, store.
**
**   publish_begin()   checks the request and commits its charge; or answers from the ledger alone
**   (the caller collects rows)
**   publish_finish()  draws, stores the point and the values, and commits before it returns
**   publish_fail()    replaces publish_finish() when some rows did not arrive
*/
#ifndef DIFFUSE_RELEASE_PUBLISH_H
#define DIFFUSE_RELEASE_PUBLISH_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Answers the request if the release is already published at this tier, or if the stored points are
** enough to publish it there without reading data. Otherwise charges for the new release, or for
** the refinement, which draws a less noisy point of a stored release. Takes over the request's list
** of keys. The caller must call publish_clear() afterwards, even after an error. Returns 1, or 0
** after setting the session's error.
*/
int publish_begin(struct publication *publication, struct session *session,
                  struct request *request);

/*
** Computes what the charge of the request needs and what takes long, while the ledger is not locked
** (struct computation). publish_begin() calls this function itself. dp_batch() calls it for each
** request before its transaction begins, and deferred_forget() after the transaction. Returns 1, or
** 0 after setting the session's error.
*/
int publish_prepare(struct session *session, const struct request *request);

/*
** Does the work of publish_begin() inside a transaction of the caller, for dp_batch(). Returns 1,
** or 0 after setting the session's error.
*/
int publish_enter(struct publication *publication, struct session *session,
                  struct request *request);

/*
** Draws from the totals, stores the result and sets the answer. If possible, the same commit also
** publishes the result at the outer tiers of the request, and the member `spread` becomes 1.
** Returns 1, or 0 after setting the session's error. After a failure, the release is marked as
** failed.
*/
int publish_finish(struct publication *publication, const struct totals *totals);

/*
** Marks the release as failed. A failed release is never replayed or diffused, and its charge
** stays. If a refinement fails, nobody has seen a new value, so the release becomes 'released'
** again and its earlier publications stay valid.
*/
void publish_fail(struct publication *publication);

/*
** Plans a release inside the caller's transaction, which the caller must roll back. Makes the
** charge, so that the caller can read the charge from the ledger. Finishes the release as if all
** totals were 0, so that the next plan in the transaction can diffuse or refine the release.
** Returns 1, or 0 after setting the ledger's error.
*/
int publish_plan(struct publication *publication, struct session *session, struct request *request);

/*
** Publishes a stored release at an outer tier without reading data. Implements dp_diffuse(), and
** dp_mix() if `mixing` is not null. Returns 1, or 0 after setting the ledger's error.
*/
int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct mixing *mixing);

/*
** Publishes a stored release at the publication's tier, inside a transaction: reads the answer that
** the tier has, or publishes a point of the path there. With `may_refine`, begins to refine the
** release if the tier lies inside all points. The publication has its release, its tiers, and the
** mixing that dp_mix() applies to the numbers, if any. Returns 1, or 0 after setting the ledger's
** error.
*/
int publish_replay(struct publication *publication, int may_refine);

/* ---- long computations that run while the ledger is not locked ------------------------------- */

/*
** Nobody else can use the ledger during a transaction, so a transaction should not compute for
** seconds. It works as follows:
**
**   1. A transaction with `defers` reads the ledger and finds out what it has to compute. It adds
**      what takes long to the list, and fails.
**   2. After the transaction has been rolled back, publish_prepare() computes what is on the list.
**   3. The next transaction reads the ledger again, and finds the results on the list.
**
** If the ledger has changed after step 1, the transaction finds nothing of use on the list. It
** repeats the steps, or computes what is missing itself if it does not defer.
*/

/* A computation on the list: the first member of a struct that has its input and its result. */
struct computation {
  struct computation *next;
  int done;
  int (*compute)(struct session *session, struct computation *computation);
  void (*free)(struct computation *computation);
};

/* Empties the list. */
void deferred_forget(struct session *session);

/* ---- checking publications (verify.c) -------------------------------------------------------- */

/*
** Makes all checks of dp_verify(): checks the accounts and the seals of the ledger (ledger/), and
** compares every publication with the stored point from which it was computed. Returns 'ok' or the
** first discrepancy, or null after setting the ledger's error. The caller calls sqlite3_free(). If
** the ledger is open for an audience (ledger/views.c), the discrepancy or error only says that
** verification failed. Call session_verify() inside a transaction.
*/
char *session_verify(struct session *session);

/* Tells the ledger the properties of a mechanism. */
describe_mechanism mechanism_describe;

#endif
