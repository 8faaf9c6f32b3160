/*
** kinds.h: the table of aggregates. One row of the table (kinds.c) is one kind of release. The rows
** of data come from the owner's SELECT (aggregates.c) or from dp_release() (releases.c).
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
  P_KEYS,   /* public keys */
  P_SELECT, /* how private keys are selected; never an argument */
  P_KERNEL, /* the kernel of a local randomisation */
  P_SURVEY, /* the other parameters of a local randomisation; never an argument */
  P_LOSS,   /* the loss of a model */
  P_SGD,    /* the other parameters of a model; never an argument */
  PARAMETERS
};

/*
** The position of each argument in a call; 0 if the function has no such argument, because argument
** 0 is always the tier.
*/
struct places {
  int key, value; /* read from each row; for a model, y and the features */
  int unit, name;
  int parameters[PARAMETERS];
};

/* The form of the published answer. */
enum answer_form { FORM_NUMBER, FORM_ARRAY, FORM_OBJECT, FORM_SYMBOL };

struct aggregate {
  const char *name; /* the SQL function */
  const char *kind; /* the kind, for dp_release() and in the ledger */
  const struct family *family;
  enum answer_form form;
  int min_arguments, max_arguments;
  struct places places;
  unsigned takes;      /* bits 1 << parameter; a parameter without a place is an option */
  double default_clip; /* 0: the caller must give a clip */
  int is_ou;
  int counts;          /* a row contributes 1 instead of its value */
  int root;            /* of a spread: publish the standard deviation */
  const char *grouped; /* the function that releases all groups at once; null: any dp_group_ */
};

extern const struct aggregate aggregates[];
extern const int aggregate_count;

#define MAX_ARGUMENTS 7

/* Returns the aggregate of a kind, or null. */
const struct aggregate *aggregate_find(const char *kind);

/*
** Returns the aggregate's mechanism of that name (null: its default one); null if it has no such
** mechanism.
*/
const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name);

/* Reports an unknown mechanism, and lists the known ones. Always returns 0. */
int unknown_mechanism(const struct aggregate *aggregate, struct error *error);

/* Reports an unknown kind in the same way. */
int unknown_kind(struct error *error);

/*
** Lists the columns that dp_release() expects from a query, as in "key, x, unit". Returns their
** number.
*/
int aggregate_columns(const struct aggregate *aggregate, int by_unit, const char **names);

#endif
