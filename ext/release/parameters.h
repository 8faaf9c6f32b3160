/*
** parameters.h: what a caller asks for: tier, bounds, and a name or JSON options, checked.
*/
#ifndef DIFFUSE_RELEASE_PARAMETERS_H
#define DIFFUSE_RELEASE_PARAMETERS_H

#include "release/kinds.h"
#include "ledger/ledger.h"
#include "mechanism/sgd.h"

struct request {
  const struct aggregate *aggregate;
  char *tier;
  char *name;                  /* null: a release of its own */
  char *mechanism;             /* null: that of the kind */
  double clip, weight, centre; /* weight 1 unless given; centre 0, or the middle of [lo, hi] */
  double radius, theta, rho;   /* NaN where not given, like all numbers below */
  double t;                    /* time of the process: sets the weight (life.c) */
  double lo, hi;
  double size;                  /* dim or bins */
  double max_groups, key_share; /* private keys */
  double half_width;            /* dp_plan(): the wanted 95% half-width */
  char *quantiles;              /* a number or a JSON array; null where the kind has none */
  char *keys;                   /* public keys as a JSON array, sorted; null: none, or private */
  struct descent descent;       /* models: what options say of one ... */
  char *loss, *stop, *schedule; /* ... but for these words */
  double reports;               /* local randomisation: n, ... */
  char *otherwise, *kernel;     /* ... the state of missing rows, and the kernel's cells */
  char *model;                  /* ... and its text, once it is settled (model.h) */
  char **key_list;              /* the same as texts */
  int key_count;
  char *sql;    /* dp_release(): the text of its query; null otherwise */
  char *tables; /* what a question reads (ledger/policy.h); null: units are not shown to be apart */
  double steps; /* dp_release(): of a question for one unit and each of its rows */
  int refine;
  int is_blind;    /* the statement around it could not show how it ends (statement_guard.h) */
  int rows;        /* dp_partial(): rows are protected, not units ... */
  int whole_units; /* ... and all rows of a unit are in one shard */
};

#define DEFAULT_KEY_SHARE 0.1

/* Whether a parameter is one of the kind. */
int request_takes(const struct request *request, enum parameter parameter);

void request_clear(struct request *request);

/*
** The parameters as a release has them; its texts are the request's own, id and lattice are not
** set.
*/
struct ledger_release request_release(const struct request *request);

/* Keys as a JSON array. To be freed. */
char *keys_json(char *const *keys, int count);

/* The parameters as JSON for people. To be freed. */
char *request_options(const struct request *request);

#endif
