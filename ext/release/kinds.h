/* kinds.h: the kinds of release. A kind is a statistic, with or without a public bound of its true
** value (names `ou_...`, argument `radius`), with or without keys (names `group_...`, an answer for
** each key). kinds.c makes all kinds from one row for each statistic. */
#ifndef DIFFUSE_RELEASE_KINDS_H
#define DIFFUSE_RELEASE_KINDS_H

#include "base/error.h"
#include "ledger/ledger.h"
#include "mechanism/mechanism.h"

/* Arguments and options that set a parameter of a kind. */
enum parameter {
  P_NONE, /* none: ends a list */
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
  P_KEYS,    /* public keys */
  P_WAYS,    /* several attributes of cross tables; always an option */
  P_PERIODS, /* the periods of a series; always an option */
  P_SERIES,  /* clip and diagnose, which the kind has in a series only; always options */
  P_SELECT,  /* how private keys are selected; always an option */
  P_SHARE,   /* the share of the tier's delta_keys; always an option */
  P_OWN,     /* parameters that only this kind has (`own_options` below) */
  PARAMETERS
};

/* The position of each argument in a call. Argument 0 is always the tier, so position 0 means that
** the function has no such argument. */
struct places {
  int key, value; /* arguments that are read from each row; for a model, y and the features */
  int name;
  int parameters[PARAMETERS];
};

/* The form of the published answer. FORM_ARRAYS is an object with an array for each key. */
enum answer_form { FORM_NUMBER, FORM_ARRAY, FORM_OBJECT, FORM_ARRAYS, FORM_SYMBOL };

/* When the function takes x. */
enum takes_x { X_NEVER, X_ALWAYS, X_UNLESS_KEYED };

#define MOST_OF_STATISTIC 4

/* A statistic: one row of the table. Absent members are 0. */
struct statistic_row {
  const char *name;
  const struct family *family, *keyed; /* the family without and with keys */
  enum answer_form form;               /* without keys */
  enum takes_x x;
  enum parameter arguments[MOST_OF_STATISTIC]; /* the parameters that are arguments, in order */
  enum parameter last;                         /* an argument that may be left out */
  unsigned options, keyed_options;             /* bits 1 << parameter of the other parameters */
  double default_clip;                         /* see struct aggregate */
  int counts, root;                            /* the same */
  int has_key; /* it reads a key or another column before x, whatever the keys of the kind */
  int counts_units;
  int needs_name; /* the options must be given */
  int has_series; /* it can be released period by period (release/series.c) */
  /* Why there is no kind with a public bound, or with keys; null: there is one. */
  const char *no_bound, *no_keys;
  /* What a room beside the core gives (struct aggregate). */
  const struct procedure *procedure;
  const struct option *own_options;
  int own_option_count;
  const struct own_rows *rows;
};

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
  int counts_units;    /* it counts units, so the ledger must protect units */
  int root;            /* for a spread: publish the standard deviation instead of the variance */
  const char *grouped; /* the function to use with GROUP BY; null: any dp_group_ function */

  /* For a kind of a room beside the core (struct room); null: as the kinds of the core. */
  const struct procedure *procedure; /* release/procedure.h */
  const struct option *own_options;  /* functions/options.h: P_OWN */
  int own_option_count;
  const struct own_rows *rows; /* query/query.h */
};

/* Return the kinds and the mechanisms in the order in which messages list them, then null. */
const struct aggregate *kind_at(int index);
const struct mechanism *mechanism_at(int index);

#define MAX_ARGUMENTS 8

/* Tells the ledger how the numbers of a kind are shown. Counts are not below 0. */
describe_display kind_display;

/* Returns whether the numbers of a kind are numbers of rows. One unit may have several rows, so the
** caller has to give the clip: a default would silently count something else than the rows. */
int kind_counts_rows(const struct aggregate *aggregate);

/* Returns the aggregate of a kind, or null. */
const struct aggregate *aggregate_find(const char *kind);

/* Returns the mechanism of that name, or the default mechanism of the aggregate if `name` is null.
** Returns null if the aggregate has no such mechanism. */
const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name);

/* Returns the mechanism of a stored release, or null if this version does not know one of them. */
const struct mechanism *mechanism_of(const struct ledger_release *release);

/* Reports an unknown mechanism, and lists those of the kind. Always returns 0. */
int unknown_mechanism(const struct aggregate *aggregate, const char *name, struct error *error);

/* Reports an unknown kind: says why there is no such kind, or lists the known kinds. `kind` may be
** null. Always returns 0. */
int unknown_kind(const char *kind, struct error *error);

/* Sets `names` to the columns that dp_release() expects from a query, for example "key, x, unit".
** Returns the number of these columns. */
int aggregate_columns(const struct aggregate *aggregate, int by_unit, const char **names);

/* ---- the rooms beside the core --------------------------------------------------------------- */

/* A room beside the core has kinds, mechanisms and SQL functions of its own. The core does not
** include it: diffuse.c lists the rooms, and the core finds their kinds and mechanisms in its
** tables. */

struct host;
struct numbers;
struct publication;
struct sqlite3;

struct room {
  const struct mechanism *const *mechanisms; /* the list ends with null; null: none */
  const struct statistic_row *statistics;
  int statistic_count;
  /* Applies the kernel that is stored for the publication at a tier, if there is one, to the
  ** numbers of its point. If the kernel does not fit the release, sets the count of the numbers to
  ** 0, so that the stored values differ from them. Returns 1, or 0 after setting the ledger's
  ** error. At most one room has this function. */
  int (*resend)(const struct publication *publication, const char *tier, struct numbers *numbers);
  const struct function *functions; /* functions/functions.h; null: none */
};

/* Adds the rooms to the tables. Null ends the list. Further calls do nothing. */
void rooms_open(const struct room *const *rooms);

/* Calls resend() of the room that has it. */
int rooms_resend(const struct publication *publication, const char *tier, struct numbers *numbers);

#endif
