/*
** publish.h: the one core of every release, whatever feeds it rows: charge, collect, draw, store.
**
**   publish_begin()   checks, charges and commits; or answers from the ledger alone
**   (the caller collects rows)
**   publish_finish()  draws, stores the point and the values, commits; only then is there a value
**   publish_fail()    instead of publish_finish(), when the rows did not all come
*/
#ifndef DIFFUSE_FUNCTIONS_PUBLISH_H
#define DIFFUSE_FUNCTIONS_PUBLISH_H

#include "functions/host.h"
#include "functions/request.h"
#include "ledger/ledger.h"
#include "release/estimate.h"
#include "release/release.h"

struct publication {
  struct host *host;
  struct ledger_release release;
  struct ledger_tier *tiers;
  int tier_count, at; /* tiers[at] is where it is published */
  struct bounds bounds;
  uint64_t variance; /* of the noise there, in lattice steps; 0 for a replay */
  int refining;      /* walks inward from points that are stored already */
  int answered;      /* value is there: nothing to collect */
  double value;
};

/*
** Opens the ledger, checks that it protects what the caller's rows are, and answers or charges.
** Returns null, or one sentence to be freed. publish_clear() afterwards either way.
*/
char *publish_begin(struct publication *publication, struct host *host,
                    const struct request *request);

/* Publishes the exact fine total. Returns null and sets value, or one sentence to be freed. */
char *publish_finish(struct publication *publication, int128 total);

/*
** Marks the release as failed: it is never replayed or diffused. The charge stays. A refinement that
** fails has drawn nothing: what was published before is good as ever.
*/
void publish_fail(struct publication *publication);

/*
** Marks a finished release as failed, because its rows turn out not to have been all. A refinement
** too: its value was in the ledger for somebody to read, so there must be no second one for its price.
*/
void publish_revoke(struct host *host, int64_t release_id);

/*
** What a release would do, inside the caller's transaction, which must be rolled back: the charge is
** made and can be read from the ledger, and the release is finished as if its data summed up to 0, so
** that the next plan can diffuse or refine it. Returns 1, or 0 with the reason in the ledger.
*/
int publish_plan(struct publication *publication, struct host *host, const struct request *request);

/* How publication->at shows the release. */
struct view publish_view(const struct publication *publication);

/* dp_diffuse(): publishes a stored release at an outer tier. Reads no data. */
char *publish_diffuse(struct host *host, const char *name, const char *tier, double *value);

void publish_clear(struct publication *publication);

#endif
