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

#include "functions/host.h"
#include "release/parameters.h"
#include "ledger/ledger.h"
#include "math/renyi.h"
#include "mechanism/sgd.h"

/* What people get: a number, or JSON. */
struct answer {
  double number;
  char *json; /* null for a number; sqlite3_free */
};

struct markov_kernel;

/* A point that has been drawn and is not stored yet. */
struct drawn {
  int tier;
  uint64_t clock;
  int64_t *values;
};

struct publication {
  struct host *host;
  struct ledger_release release;
  const struct aggregate *aggregate; /* of its kind */
  const struct mechanism *mechanism;
  struct contribution question; /* its parameters */
  struct layout shape;          /* of a unit's vector */
  struct descent descent;       /* of a model */
  struct cost_room room;        /* what the curve of its cost reads */
  int by_unit;                  /* units are protected, not rows */
  struct ledger_grid grid;      /* what its coordinates are; owned */
  struct ledger_tier *tiers;
  int tier_count, at;                  /* tiers[at] is where it is published */
  uint64_t variance;                   /* of the noise there, in lattice steps: its clock */
  double curve[RENYI_ORDERS];          /* what a release of a symbol costs there */
  const struct markov_kernel *channel; /* what sends its groups on there; null for none */
  int refining;                        /* walks inward from points that are stored already */
  int answered;                        /* the answer is there: nothing to collect */
  struct answer answer;
  struct drawn *drawn; /* the outermost first ... */
  int drawn_count;
  size_t chosen; /* ... or of a symbol, its key */
};

/* The exact totals of the rows, in fine steps, and what they stand for. */
struct totals {
  struct ledger_grid grid; /* not owned */
  int128 *values;
};

/*
** Opens the ledger, checks that it protects what the caller's rows are, and answers or charges.
** Returns null, or one sentence to be freed. publish_clear() afterwards either way. Takes over the
** request's list of keys.
*/
char *publish_begin(struct publication *publication, struct host *host, struct request *request);

/* Publishes the totals. Returns null and sets the answer, or one sentence to be freed. */
char *publish_finish(struct publication *publication, const struct totals *totals);

/*
** The same in two steps: draws and answers, but stores nothing; publish_keep() stores it, or
** publish_revoke() makes it fail. The release is 'charged' in between, and what was drawn is in
** memory alone.
*/
char *publish_draw(struct publication *publication, const struct totals *totals);

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
int publish_plan(struct publication *publication, struct host *host, struct request *request);

/*
** dp_diffuse() and, with a channel, dp_mix(): publishes a stored release at an outer tier. Reads no
** data.
*/
char *publish_diffuse(struct publication *publication, struct host *host, const char *name,
                      const char *tier, const struct markov_kernel *channel);

/* The answer as the result of the function that runs. */
void publish_result(sqlite3_context *context, const struct publication *publication);

void publish_clear(struct publication *publication);

#endif
