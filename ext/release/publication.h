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

/* What a release is (definition.h). It does not change once it is made or read. */
struct definition {
  struct ledger_release release;
  const struct aggregate *aggregate; /* of its kind */
  const struct mechanism *mechanism;
  struct contribution contribution; /* of a unit: the parameters */
  struct layout layout;             /* of a unit's vector */
  struct descent descent;           /* of a model */
  int by_unit;                      /* units are protected, not rows */
};

/* Where on the path of tiers it is published, and how it gets there. */
struct position {
  struct ledger_tier *tiers;
  int count, at;                      /* tiers[at] is where */
  uint64_t clock;                     /* of the noise there: its variance in lattice steps */
  const struct markov_kernel *kernel; /* what sends its groups on there; null for none */
  int refining;                       /* walks inward from points that are stored already */
};

/* What that costs. */
struct publication_cost {
  struct cost_room room;      /* what the curve of a cost reads; owned */
  double curve[RENYI_ORDERS]; /* of a category */
};

struct publication {
  struct session *session;
  struct definition definition;
  struct position position;
  struct publication_cost cost;
  struct ledger_grid grid; /* what its coordinates are; owned */
  int answered;            /* the answer is there: nothing to collect */
  struct answer answer;
  struct drawn *drawn; /* the outermost first ... */
  int drawn_count;
  size_t chosen; /* ... or the place of the category */
};

/* The exact totals of the rows, in fine steps, and what they stand for. */
struct totals {
  struct ledger_grid grid; /* not owned */
  int128 *values;
};

/* Empties a publication and frees what it owns. */
void publish_clear(struct publication *publication);

#endif
