/* parameters.h: the checked parameters of a request: tier, bounds, and a name or JSON options. */
#ifndef DIFFUSE_RELEASE_PARAMETERS_H
#define DIFFUSE_RELEASE_PARAMETERS_H

#include "ledger/ledger.h"
#include "release/kinds.h"
#include "release/parameters.h"
#include "release/periods.h"
#include "release/programme.h"

struct request {
  const struct aggregate *aggregate;
  char *tier;
  char *name;                  /* null: an unnamed release */
  char *mechanism;             /* null: the default mechanism of the kind */
  double clip, weight, centre; /* weight defaults to 1, and centre to 0 or the middle of [lo, hi] */
  double radius, theta, rho;   /* NaN if not given, like all numbers below */
  double t;                    /* the time of the OU process, from which the weight follows */
  double lo, hi;
  double size;                  /* dim or bins */
  int has_default_leaves;       /* size is request_leaves() */
  double grid;                  /* the step of the values of x */
  double until, least;          /* stop when it is accurate enough (until.h) */
  double max_groups, key_share; /* parameters of the selection of private keys */
  double half_width;            /* dp_plan(): the requested 95% half-width */
  double rows_guess, key_guess; /* dp_plan(): public guesses at the number of rows and of groups */
  char *unit_word;              /* dp_plan(): the unit of the values, for the summary */
  char *bounds;                 /* dp_plan(): the name of a release of bounds; null: none */
  char *quantiles;              /* a number or a JSON array; null for kinds without quantiles */
  char *keys;              /* public keys as a sorted JSON array; null: no keys or private keys */
  char *keys_given;        /* the same in the order of the option, if that is another; or null */
  void *details;           /* the parameters that only this kind has (procedure.h); owned */
  char *model;             /* what the ledger stores of these parameters: a JSON object, or null */
  char *attributes, *ways; /* the texts of the options keys and ways of cross tables */
  struct programme *programme; /* cross tables; null: none */
  struct periods *periods;     /* a series; null: none */
  char **key_list;             /* the public keys as texts */
  int key_count;
  char *sql;       /* the text of the question */
  int has_values;  /* the text has values that were bound, which no error shows */
  char *statement; /* dp_merge(): the text 'dp_merge'; null otherwise */
  char *tables;    /* the tables that the query reads, as JSON; null: unknown (ledger/ledger.h) */
  char *notice;    /* what the question means (query/notices.c); null or empty: what it seems to */
  char *unit_type; /* a series: the type of the units (query/question.h) */
  double steps, bytes, seconds; /* dp_release(): the limits of a question (query/limits.h) */
  int refine;
  int diagnose; /* count the units that are clipped */
  /* The outer tiers at which the answer will also be published; a null pointer ends the list. */
  const char *const *outward; /* not owned; null: none */
  int resumes;                /* dp_batch(): finish a release that was charged and has no point */
  int has_states;             /* dp_merge(): the states fix the norm of the vectors */
  int rows;                   /* dp_partial(): the ledger protects rows, not units */
  int whole_units;            /* dp_partial(): all rows of a unit are in one shard */
  char *shard;                /* dp_partial(): the name of the shard */
  char *shards;               /* dp_merge(): the number of shards, or their names as JSON */
};

#define DEFAULT_KEY_SHARE 0.1

/* Returns whether the kind of the request has this parameter. */
int request_takes(const struct request *request, enum parameter parameter);

void request_clear(struct request *request);

/*
** Returns the parameters as a release without an id and without a lattice. The request still owns
** the texts.
*/
struct ledger_release request_release(const struct request *request);

/* Returns the parameters as JSON with decimal numbers. The caller frees the text. */
char *request_options(const struct request *request);

/* ---- defaults of parameters, and checks across parameters ------------------------------------ */

/*
** request_finish() sets the defaults of all parameters and checks the parameters against each
** other. request_finish_shape() does the same only for the parameters that determine the layout of
** the sums. Both return 1, or 0 with the error set.
*/
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

/*
** Returns the number of leaves that a request for quantiles has with a mechanism. If the options do
** not give it, a draw of a leaf (mechanism/exponential.h) has more leaves than a tree, whose noise
** grows with them.
*/
double request_leaves(const struct request *request, const struct mechanism *mechanism);

#endif
