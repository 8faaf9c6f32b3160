/* publication.h: a release while it is being published. */
#ifndef DIFFUSE_RELEASE_PUBLICATION_H
#define DIFFUSE_RELEASE_PUBLICATION_H

#include "base/error.h"
#include "ledger/ledger.h"
#include "math/cost.h"
#include "mechanism/series_matrix.h"
#include "release/kinds.h"
#include "release/periods.h"
#include "release/programme.h"

/* The published answer: a number, JSON, or NULL. */
struct answer {
  double number;
  char *json; /* null if the answer is a number; freed with sqlite3_free() */
  int is_null;
};

struct numbers; /* numbers.h */
struct publication;
struct session;

/* What dp_mix() does with a stored release (a room beside the core implements it). */
struct mixing {
  /* Publishes the release at the publication's tier. */
  int (*mix)(struct publication *publication, const struct mixing *mixing);
  /* Applies the kernel to the numbers of a point, for a release with a path. */
  int (*send)(const struct publication *publication, const struct mixing *mixing,
              struct numbers *numbers);
  const char *json; /* the kernel, as the ledger stores it */
};

/* A point that has been drawn, or that the ledger has already. */
struct drawn {
  int tier, is_stored;
  uint64_t clock;
  int64_t *values;
};

/*
** The definition of a release (definition.h). A definition does not change after it is made or read
** from the ledger.
*/
struct definition {
  struct ledger_release release;
  const struct aggregate *aggregate; /* the aggregate of its kind */
  const struct mechanism *mechanism;
  struct programme *programme; /* cross tables; null: none */
  struct periods *periods;     /* a series; null: none */
  struct series series;        /* its matrix */
  char **groups;               /* a series: the keys of its groups; null: none */
  struct contribution
      row_question;         /* a series: what vector_sum.h needs to add its rows; it takes */
  struct layout row_layout; /* each group in each period as a cell (definition_row_cell()) */
  struct contribution contribution; /* the parameters of a unit's contribution */
  struct layout layout;             /* the layout of a unit's vector */
  void *details;                    /* what only this kind has (procedure.h); owned */
  int by_unit;                      /* the ledger protects units, not rows */
  int household; /* how much a wider unit may count, as in struct contribution; 0: none */
};

/* The tier at which the release is published, and how the release gets there. */
struct position {
  struct ledger_tier *tiers;
  int count, at;  /* the publication's tier is tiers[at] */
  uint64_t clock; /* the variance of the noise at this tier, in squared lattice steps */
  const struct mixing *mixing; /* applied to the numbers at this tier; null: no kernel */
  int refining;                /* the release moves inward from points that are already stored */
};

struct publication_cost {
  struct cost_room room;      /* the parameters of the cost's curve; owned */
  double curve[RENYI_ORDERS]; /* the curve at the stored orders; for categories and reports */
};

struct publication {
  struct session *session;
  struct definition definition;
  struct position position;
  struct publication_cost cost;
  struct ledger_grid grid;    /* the grid of its coordinates; owned */
  int planned;                /* dp_plan(): nothing is drawn from data */
  int declared;               /* a series: this call declares it, and publishes no period yet */
  struct span missing;        /* a series: the periods whose rows are read and figures stored */
  const char *const *outward; /* the request's list of outer tiers; not owned */
  int spread;                 /* the answer is stored at these tiers, too */
  int failed;                 /* dp_batch(): the release failed earlier and is not run again */
  int replayed;               /* the answer was stored before, and no data are read */
  int answered;               /* the answer is set, so the caller collects no rows */
  struct answer answer;
  struct drawn *drawn; /* the drawn points; the last one is that of the publication's tier */
  int drawn_count;
  int draws_only;          /* path_publish() stores nothing (series_publish()) */
  struct numbers *figures; /* the numbers of the last of these points, or null; not owned */
  size_t chosen;           /* the index of the drawn category */
};

/* The exact totals of the rows, in fine steps (sums/layout.h), and the grid of the totals. */
struct totals {
  struct ledger_grid grid; /* not owned */
  int128 *values;
};

/* Returns the number of coordinates of a point. */
static inline size_t grid_size(const struct ledger_grid *grid) {
  return (size_t)grid->cells * (size_t)grid->components + (size_t)grid->extra;
}

/* Returns the tier at which the release is published. */
static inline const struct ledger_tier *publication_tier(const struct publication *publication) {
  return &publication->position.tiers[publication->position.at];
}

/*
** Loads the tiers and finds the publication's tier and, unless `name` is null, the release. The
** publication has its session and is empty otherwise. Returns 1 if the release exists. Sets the
** session's error if there is no such tier, but not if there is no such release.
*/
int publication_open(struct publication *publication, const char *tier, const char *name);

/* Clears a publication and frees everything that it owns. */
void publish_clear(struct publication *publication);

/* ---- the session ----------------------------------------------------------------------------- */

/* What the running SQL function computes while the ledger is not locked (publish.h). */
struct computation;
struct deferred {
  struct computation *list;
  int defers; /* 1: what takes long is not computed during the transaction */
};

struct session {
  struct error error; /* the error of the running SQL function; the ledger sets this error, too */
  struct ledger *ledger;
  struct deferred deferred;
};

#endif
