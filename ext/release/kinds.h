/*
** kinds.h: what the aggregates are. One row of the table (kinds.c) is one kind of release,
** whether its rows come from the owner's SELECT (aggregates.c) or from dp_release() (releases.c).
*/
#ifndef DIFFUSE_RELEASE_KINDS_H
#define DIFFUSE_RELEASE_KINDS_H

#include "base/error.h"

#include "mechanism/mechanism.h"

/* Arguments and options that set a parameter of a kind. */
enum parameter {
  P_CLIP,
  P_RADIUS,
  P_LO,
  P_HI,
  P_Q,
  P_DIM,
  P_BINS,
  P_CANDIDATES,
  P_KEYS,   /* public keys ... */
  P_SELECT, /* ... and how private ones are selected: never arguments of their own */
  P_KERNEL, /* of local randomisation ... */
  P_SURVEY, /* ... and what else it is drawn with: never arguments of their own */
  P_LOSS,   /* of a model ... */
  P_SGD,    /* ... and what else it is trained with: never arguments of their own */
  PARAMETERS
};

/* Where an argument stands in the call; 0 where the function has none (0 is the tier's place). */
struct places {
  int key, value; /* what a row is asked for; of a model, y and features */
  int unit, name;
  int parameters[PARAMETERS];
};

/* What people get. */
enum answer_form { FORM_NUMBER, FORM_ARRAY, FORM_OBJECT, FORM_SYMBOL };

struct aggregate {
  const char *name; /* of the SQL function */
  const char *kind; /* of dp_release() and in the ledger */
  const struct family *family;
  enum answer_form form;
  int min_arguments, max_arguments;
  struct places places;
  unsigned takes;      /* bits 1 << parameter: as argument, or as option where it has no place */
  double default_clip; /* 0: it must be given */
  int is_ou;
  int counts;          /* a row contributes 1, not its value */
  int root;            /* of a spread: the standard deviation */
  const char *grouped; /* the function for a release of all groups; null: some dp_group_ */
};

extern const struct aggregate aggregates[];
extern const int aggregate_count;

#define MAX_ARGUMENTS 7

/* The aggregate of a kind, or null. */
const struct aggregate *aggregate_find(const char *kind);

/* The mechanism of that name (null: its own) for an aggregate; null where it has none such. */
const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name);

/* Fails for a name that is none, with the known ones. Always returns 0. */
int unknown_mechanism(const struct aggregate *aggregate, struct error *error);

/* The same for a kind. */
int unknown_kind(struct error *error);

/* The columns that dp_release() wants of a query, as in "key, x, unit"; how many. */
int aggregate_columns(const struct aggregate *aggregate, int by_unit, const char **names);

#endif
