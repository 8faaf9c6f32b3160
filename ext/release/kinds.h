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

/* How the words about a figure say what one unit can contribute. */
enum share {
  SHARE_NONE,
  SHARE_ROWS,   /* at most `clip` of its rows */
  SHARE_TOTAL,  /* a total from -clip to clip */
  SHARE_LENGTH, /* a vector up to length `clip` */
  SHARE_MEAN,   /* the average of its vectors, each up to length `clip` */
  SHARE_WEIGHT, /* the weight of at most `clip` rows */
  SHARE_ONCE    /* one row, divided among its values */
};

/* What the numbers of a statistic are, in words (figure_words.c). */
struct wording {
  const char *what; /* "%": the units; "#": the quantiles */
  const char *noun; /* one of the numbers, in plans */
  enum share share;
  const char *place; /* what one release, or one group of it, has many of */
  int draws; /* the mechanism 'exponential' draws a value that has a rank near the right one */
};

#define MOST_OF_STATISTIC 4

/* A statistic: one row of the table. Absent members are 0. */
struct statistic_row {
  const char *name;
  struct wording wording;
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
  struct wording wording;
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
  const struct procedure *procedure; /* below */
  const struct option *own_options;  /* functions/functions.h: P_OWN */
  int own_option_count;
  const struct own_rows *rows; /* query/query.h */
};

/* Return the kinds and the mechanisms in the order in which messages list them, then null. */
const struct aggregate *kind_at(int index);
const struct mechanism *mechanism_at(int index);

#define MAX_ARGUMENTS 8

/* Returns whether the numbers of a kind are numbers of rows. One unit may have several rows, so the
** caller has to give the clip: a default would silently count something else than the rows. */
int kind_counts_rows(const struct aggregate *aggregate);

/* Returns the aggregate of a kind, or null. */
const struct aggregate *aggregate_find(const char *kind);

/* Returns the mechanism of that name, or the default mechanism of the aggregate if `name` is null.
** Returns null if the aggregate has no such mechanism. */
const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name);

/* Returns whether the mechanism can release a kind. */
int kind_admits(const struct aggregate *aggregate, const struct mechanism *mechanism);

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

struct definition;
struct host;
struct numbers;
struct publication;
struct request;
struct sqlite3;

/* The steps of a release that differ between kinds (publish.c calls these steps). The kinds of the
** core have the path of points (noise_path.c), except that the mechanism 'exponential' has
** drawn_quantile.c. Each step returns 1, or 0 after setting the session's error. */
struct procedure {
  /* Steps that complete a request; null: nothing to do. request.details has `details` bytes, which
  ** hold the parameters that only this kind has (`own_options`). finish() sets their
  ** defaults and checks the request. publics() returns how many public rows follow those of the
  ** question. settle() sets the parameters that depend on the tier and the ledger; if a release
  ** with the request's name exists (`found`), the publication holds it. clear() frees what the
  ** details own. */
  size_t details;
  int (*finish)(struct request *request, int by_unit, struct error *error);
  double (*publics)(const struct request *request);
  int (*settle)(struct publication *publication, struct request *request, int found);
  void (*clear)(void *details);
  /* Notes what has to be computed before the charge, while the ledger is not locked (release.h).
  ** Reports no error, because charge() will report it. Null: nothing to compute. */
  void (*prepare)(const struct publication *publication, const struct request *request);

  /* Makes definition.details from the release. Returns null if the release is impossible, with an
  ** error only when out of memory. Null: the kind has no details. */
  void *(*describe)(const struct publication *publication);
  /* Changes the contribution of a unit before its layout is made; null: changes nothing. */
  void (*contribute)(const struct definition *definition, struct contribution *contribution);

  /* Inserts a new release into the ledger and charges it. */
  int (*charge)(struct publication *publication);
  /* Draws from the exact totals on the lattice. Stores nothing. */
  int (*draw)(struct publication *publication, const int64_t *totals);
  /* 1: a draw may take minutes and reads nothing from the ledger, so draw() is called before the
  ** transaction that stores its result. A second call inside the transaction draws nothing. */
  int draws_early;
  /* Stores and publishes the result of draw(). */
  int (*keep)(struct publication *publication);
  /* The part of an error that follows the name of a release. It says why the release cannot be
  ** published at an outer tier, or only through a kernel. Null if the release has a path. */
  const char *stays;
  /* 1: no tier inside the first point can get a point from the data. */
  int never_refines;
  /* Checks that a stored release may be diffused from tier `from` to the publication's tier.
  ** `clock` is the clock of the new point at one tier on this way. Null: it may. */
  int (*diffusible)(const struct publication *publication, int from, uint64_t clock);
  /* A check of dp_verify() (ledger.h): the publication follows from the mechanism and the kernels.
  ** The member is null if the release has a path; verify_points.c checks the path. */
  int (*verify)(struct publication *publication, const struct ledger_publication *published);
  /* For a release with a path: checks that the stored curve of a publication is at least the cost
  ** that its mechanism computes at this clock. `curve` may be null. Null: the cost is that of the
  ** noise, which the ledger checks. */
  int (*paid)(struct publication *publication, uint64_t clock, const double *curve);
};

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
