/*
** kinds.h: the table of aggregates. One row of the table (kinds.c) describes one kind of release.
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
  P_GRID,     /* the step of the values of x; always an option */
  P_DIAGNOSE, /* count clipped units; always an option */
  P_CANDIDATES,
  P_KEYS,   /* public keys */
  P_SELECT, /* how private keys are selected; always an option */
  P_SHARE,  /* the share of the tier's delta_keys; always an option */
  P_OWN,    /* parameters that only this kind has (`options` below) */
  PARAMETERS
};

/*
** The position of each argument in a call. Argument 0 is always the tier, so position 0 means that
** the function has no such argument.
*/
struct places {
  int key, value; /* arguments that are read from each row; for a model, y and the features */
  int unit, name;
  int parameters[PARAMETERS];
};

/* The form of the published answer. FORM_ARRAYS is an object with an array for each key. */
enum answer_form { FORM_NUMBER, FORM_ARRAY, FORM_OBJECT, FORM_ARRAYS, FORM_SYMBOL };

struct aggregate {
  const char *name; /* the SQL function */
  const char *kind; /* the name of the kind in dp_release() and in the ledger */
  const struct family *family;
  enum answer_form form;
  int min_arguments, max_arguments;
  struct places places;
  unsigned takes;      /* bits 1 << parameter; a parameter without a place is an option */
  double default_clip; /* 0: the caller must give a clip */
  int is_ou;
  int counts;          /* a row contributes 1 instead of its value */
  int root;            /* for a spread: publish the standard deviation instead of the variance */
  const char *grouped; /* the function to use with GROUP BY; null: any dp_group_ function */

  /* For a kind of a room beside the core (room.h); null: as the kinds of the core. */
  const struct procedure *procedure; /* release/procedure.h */
  const struct option *options;      /* functions/options.h: P_OWN */
  int option_count;
  const struct own_rows *rows; /* query/row_reader.h */
};

/* Return the kinds and the mechanisms in the order in which messages list them, then null. */
const struct aggregate *kind_at(int index);
const struct mechanism *mechanism_at(int index);

/*
** core_open() puts the kinds and mechanisms of the core into the tables. The others add those of a
** room (room.h). A list of mechanisms ends with null.
*/
void core_open(void);
void kinds_add(const struct aggregate *kinds, int count);
void mechanisms_add(const struct mechanism *const *mechanisms);

#define MAX_ARGUMENTS 9

/*
** Returns whether the numbers of a kind cannot be negative. This holds for counts, and for numbers
** that are computed from x in [lo, hi] with lo >= 0. lo is NaN for kinds without a range.
*/
int kind_is_not_negative(const char *kind, double lo);

/* Returns the aggregate of a kind, or null. */
const struct aggregate *aggregate_find(const char *kind);

/*
** Returns the mechanism of that name, or the default mechanism of the aggregate if `name` is null.
** Returns null if the aggregate has no such mechanism.
*/
const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name);

/* Reports an unknown mechanism, and lists the known mechanisms. Always returns 0. */
int unknown_mechanism(const struct aggregate *aggregate, struct error *error);

/* Reports an unknown kind, and lists the known kinds. Always returns 0. */
int unknown_kind(struct error *error);

/*
** Sets `names` to the columns that dp_release() expects from a query, for example "key, x, unit".
** Returns the number of these columns.
*/
int aggregate_columns(const struct aggregate *aggregate, int by_unit, const char **names);

#endif
