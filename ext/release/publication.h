/*
** publication.h: a release on its way to what people get.
*/
#ifndef DIFFUSE_RELEASE_PUBLICATION_H
#define DIFFUSE_RELEASE_PUBLICATION_H

#include "ledger/ledger.h"
#include "math/renyi.h"
#include "mechanism/sgd.h"
#include "release/kinds.h"

/* What people get: a number, or JSON. */
struct answer {
  double number;
  char *json; /* null for a number; sqlite3_free */
};

struct markov_kernel;
struct session; /* session.h */

/* A point that has been drawn and is not stored yet. */
struct drawn {
  int tier;
  uint64_t clock;
  int64_t *values;
};

struct publication {
  struct session *session;
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

/* Empties a publication and frees what it owns. */
void publish_clear(struct publication *publication);

#endif
