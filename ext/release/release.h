/* release.h: what this room offers, and what its files offer each other: a request, which becomes a
** publication, and the steps that all releases share. */
#ifndef DIFFUSE_RELEASE_RELEASE_H
#define DIFFUSE_RELEASE_RELEASE_H

#include "base/error.h"
#include "base/json.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "release/kinds.h"
#include "sums/layout.h"
#include "sums/sums.h"

struct numbers;
struct publication;
struct session;

/* ---- the periods of a series (periods.c) ----------------------------------------------------- */

/* Numbers of periods, from 0. The span of the periods first..last, both included. */
struct span {
  int first, last;
};

/* A period, for sorting. */
struct numbered {
  const char *label;
  int number;
};

struct periods {
  int references;
  int count;
  char **labels;
  struct numbered *sorted; /* the periods in the order of their labels */
  char *text;              /* the form in which the ledger stores the option */
};

/* Reads the text of the option. Returns null with the error set. */
struct periods *periods_open(struct json *json, const char *text);
struct periods *periods_retain(struct periods *periods);
void periods_release(struct periods *periods);

/* Returns the number of the period with this label, or -1. */
int periods_find(const struct periods *periods, const char *label);

/* Returns whether a label is a date of the form of the last period, and after it. */
int periods_is_later(const struct periods *periods, const char *label);

/* Writes the last day of a period, such as 2026-02-28. Returns 0 if the label is not a date. */
#define PERIOD_DAY 11
int periods_last_day(const struct periods *periods, int period, char day[PERIOD_DAY]);

/* Returns the key of a figure: the label of the period, or "first/last" for several periods; with
** groups, a JSON array of this text and the key of the group. `total`: the figure is a running
** total, which is "first/last" even if it has one period. `group` is null without groups. The
** caller calls sqlite3_free(). Null: out of memory. */
char *periods_key(const struct periods *periods, struct span span, int total, const char *group);

/* Reads such a key. If the release has groups, sets *group to the key of the group, which the
** caller frees; otherwise to null. Returns 0 without an error if the text is no such key. */
int periods_read_key(const struct periods *periods, struct json *json, const char *key,
                     int has_groups, struct span *span, char **group);

/* ---- the keys of cross tables (cross_keys.c) ------------------------------------------------- */

struct attribute {
  char *name;
  char *quoted; /* the name as published keys have it, with a colon */
  char **keys;  /* in the order of the option */
  int count;
};

struct cross_keys {
  int references;
  int count; /* of attributes */
  struct attribute attributes[WAYS_MAX_ATTRIBUTES];
  struct ways ways[2]; /* by norm of the noise; without multipliers until it is measured */
  int is_measured[2];
  char *keys_text, *ways_text; /* the stored forms of the options */
};

/* Makes cross keys from the texts of the two options, and checks them. With `takes_sizes`, a number
** may stand for the keys of an attribute (dp_plan()). Returns null with the error set. */
struct cross_keys *cross_keys_open(struct json *json, const char *keys, const char *ways,
                                   int takes_sizes);
struct cross_keys *cross_keys_retain(struct cross_keys *cross_keys);
void cross_keys_release(struct cross_keys *cross_keys);

/* Set the multipliers for noise in the Euclidean norm or in the sum norm, unless they are set.
** cross_keys_measure() computes them (mechanism/mechanism.h) and returns 1, or 0 if memory ran out.
** cross_keys_restore() takes them from the JSON array that the ledger stores, and returns 1, or 0
** with the error set. cross_keys_multipliers() then returns the array for the ledger, which the
** caller frees. */
int cross_keys_measure(struct cross_keys *cross_keys, int in_sum_norm);
int cross_keys_restore(struct cross_keys *cross_keys, struct json *json, int in_sum_norm,
                       const char *stored);
char *cross_keys_multipliers(const struct cross_keys *cross_keys, int in_sum_norm);

/* Returns the key of a cell as it is published: a JSON object with the key of each attribute of the
** table, in the order of the attributes. The caller frees the text. Null if memory runs out. */
char *cross_keys_of_cell(const struct cross_keys *cross_keys, const struct cross_table *table,
                         int cell);

/* Returns the published form of a key that somebody has written: a JSON object with attributes in
** any order and keys as texts, numbers or null. The caller frees the text. Returns null without an
** error if the text is not such an object, or with the error set if memory ran out. */
char *cross_keys_asked(const struct cross_keys *cross_keys, struct json *json, const char *text);

/* Returns a table's name in plans, such as ["ward","age"]. The caller frees the text. */
char *cross_keys_table_name(const struct cross_keys *cross_keys, const struct cross_table *table);

/* Returns the attribute with this name, or -1. Names of attributes differ in more than case. */
int cross_keys_find(const struct cross_keys *cross_keys, const char *name);

/* Reports that there is no attribute of this name, and lists the known ones. `is_option`: the name
** stands in the option ways. Always returns 0. */
int cross_keys_unknown(const struct cross_keys *cross_keys, int is_option, const char *name,
                       struct error *error);

/* ---- requests (parameters.c) ----------------------------------------------------------------- */

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
  double until, least;          /* stop when it is accurate enough (path.c) */
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
  struct cross_keys *cross_keys; /* cross tables; null: none */
  struct periods *periods;       /* a series; null: none */
  char **key_list;               /* the public keys as texts */
  int key_count;
  char *sql;       /* the text of the question */
  int has_values;  /* the text has values that were bound, which no error shows */
  char *statement; /* dp_merge(): the text 'dp_merge'; null otherwise */
  char *tables;    /* the tables that the query reads, as JSON; null: unknown (ledger/ledger.h) */
  char *notice;    /* what the question means (query/query.h); null or empty: what it seems to */
  char *unit_type; /* a series: the type of the units (query/query.h) */
  double steps, bytes, seconds; /* dp_release(): the limits of a question (query/query.h) */
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

/* Returns the parameters as a release without an id and without a lattice. The request still owns
** the texts. */
struct ledger_release request_release(const struct request *request);

/* Returns the parameters as JSON with decimal numbers. The caller frees the text. */
char *request_options(const struct request *request);

/* request_finish() sets the defaults of all parameters and checks the parameters against each
** other. request_finish_shape() does the same only for the parameters that determine the layout of
** the sums. Both return 1, or 0 with the error set. */
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

/* Returns the number of leaves that a request for quantiles has with a mechanism. If the options do
** not give it, a draw of a leaf (mechanism/mechanism.h) has more leaves than a tree, whose noise
** grows with them. */
double request_leaves(const struct request *request, const struct mechanism *mechanism);

/* ---- long computations that run while the ledger is not locked ------------------------------- */

/* Nobody else can use the ledger during a transaction, so a transaction should not compute for
** seconds. It works as follows:
**
**   1. A transaction with `defers` reads the ledger and finds out what it has to compute. It adds
**      what takes long to the list, and fails.
**   2. After the transaction has been rolled back, publish_prepare() computes what is on the list.
**   3. The next transaction reads the ledger again, and finds the results on the list.
**
** If the ledger has changed after step 1, the transaction finds nothing of use on the list. It
** repeats the steps, or computes what is missing itself if it does not defer. */

/* A computation on the list: the first member of a struct that has its input and its result. */
struct computation {
  struct computation *next;
  int done;
  int (*compute)(struct session *session, struct computation *computation);
  void (*free)(struct computation *computation);
};

/* What the running SQL function computes while the ledger is not locked. */
struct deferred {
  struct computation *list;
  int defers; /* 1: what takes long is not computed during the transaction */
};

struct session {
  struct error error; /* the error of the running SQL function; the ledger sets this error, too */
  struct ledger *ledger;
  struct deferred deferred;
};

/* ---- publications (definition.c) ------------------------------------------------------------- */

/* The published answer: a number, JSON, or NULL. */
struct answer {
  double number;
  char *json; /* null if the answer is a number; freed with sqlite3_free() */
  int is_null;
};

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

/* The definition of a release (definition.c). A definition does not change after it is made or read
** from the ledger. */
struct definition {
  struct ledger_release release;
  const struct aggregate *aggregate; /* the aggregate of its kind */
  const struct mechanism *mechanism;
  struct cross_keys *cross_keys; /* cross tables; null: none */
  struct periods *periods;       /* a series; null: none */
  struct series series;          /* its matrix */
  char **groups;                 /* a series: the keys of its groups; null: none */
  struct contribution
      row_question;         /* a series: what sums.h needs to add its rows; it takes */
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

/* Loads the tiers and finds the publication's tier and, unless `name` is null, the release. The
** publication has its session and is empty otherwise. Returns 1 if the release exists. Sets the
** session's error if there is no such tier, but not if there is no such release. */
int publication_open(struct publication *publication, const char *tier, const char *name);

/* Clears a publication and frees everything that it owns. */
void publish_clear(struct publication *publication);

/* Sets the kind, contribution and layout of a publication whose release already has its parameters.
** `keys` is the number of public keys. */
int definition_describe(struct publication *publication, int keys);

/* Sets the contribution and the layout from the kind and the parameters, without a ledger. Returns
** 1, or 0 if memory ran out. */
int definition_layout(struct publication *publication, int keys, int replace);

/* Checks that the release protects the wider unit of the ledger, if it has one (dp_within). Returns
** 1, or 0 with the error set. */
int definition_check_wider(const struct publication *publication);

/* Returns what the draw of a quantile by the mechanism 'exponential' depends on. */
struct leaf_draw definition_leaf_draw(const struct publication *publication);

/* Returns the number of public keys of a stored release. */
int definition_keys(const struct ledger_release *release);

/* Returns the grid of the release's stored points, without the texts of the keys. */
struct ledger_grid definition_grid(const struct publication *publication);

/* Checks that the keys in publication->grid, which were read from the path, are the public keys of
** the release. */
int definition_same_keys(const struct publication *publication);

/* Writes the key that the coordinates of a period of a series have in the ledger. */
#define PERIOD_KEY 12
const char *definition_period_key(int period, char key[PERIOD_KEY]);

/* Returns the shrink factor of the coordinates. For averages and other statistics that are not
** linear, the factor depends on the data. The function then returns 1, or 0 if the factor could be
** too small for a double. */
double definition_shrink(const struct publication *publication);

/* Checks that the lattice in the ledger fits the layout of the release: the spacing of the lattice
** is that of the layout, and the stored sensitivity is at least that of the mechanism. */
int definition_same_lattice(const struct publication *publication);

/* Returns the point that a path has for a tier, or null. */
const struct ledger_point *path_point(const struct ledger_path *path, const char *tier);

/* Returns the view of the release with the clock of the publication's tier. */
struct view definition_view(const struct publication *publication);

/* Returns what the estimators read of the release, with `delta` for the selection of private keys.
** The caller gives room for its quantiles. */
struct quantiles {
  double list[LAYOUT_MAX_QUANTILES];
};
struct reading definition_reading(const struct publication *publication, double delta,
                                  double confidence, struct quantiles *quantiles);

/* Stores a new release. Does nothing for a release that is stored already (dp_batch() finishes such
** a release). Returns 1, or 0 after setting the ledger's error. */
int definition_store(struct publication *publication);

/* ---- the numbers of a point (numbers.c) ------------------------------------------------------ */

#define NUMBERS_CONFIDENCE 0.95 /* of the intervals that are published and planned */

/* The published numbers of a point. */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink, confidence;
  struct ledger_clipping clipping; /* NaN without the option diagnose */
  char *const *keys;               /* the keys of the cells; null if there are no keys */
  char **made; /* the keys of cross tables or a series, `made_count` texts; owned */
  int made_count;
  char **sent; /* the keys, if a kernel made the numbers: one allocation; owned */
};

void numbers_clear(struct numbers *numbers);

/* Computes the published numbers of a point, with intervals of this confidence. The selection of
** private keys uses `delta`. The caller clears the numbers in both cases. Of a series, these are
** the figures of the periods from publication->missing.first on. Returns 1, or 0 after setting the
** ledger's error. */
int numbers_read(const struct publication *publication, double delta, double confidence,
                 const int64_t *values, struct numbers *numbers);

/* Does the same for a statistic that is inside the release (mechanism/mechanism.h), which has
** neither cross tables nor periods. */
int numbers_inside(const struct publication *publication, double delta, double confidence,
                   enum inside inside, const int64_t *values, struct numbers *numbers);

/* Computes the figures of `count` spans of a series: the given one, and each next one a period
** later. `values` are the points of its first `appended` periods, as publication->grid has them;
** `total` is that of periods_key(). The groups have their order; the components of a group are
** those of a release of one period. */
int numbers_spans(const struct publication *publication, struct span span, int count, int total,
                  double confidence, const int64_t *values, struct numbers *numbers);

/* Converts one of the numbers to the form that the ledger stores. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/* ---- precision (precision.c) ----------------------------------------------------------------- */

/* Returns the half-width of the planned statistic at a rate, with the mechanism of the publication.
** The half-width is in the unit of the value if `rows` is a guess of the number of rows, and in the
** unit of the sums if `rows` is NaN. Sets the lattice and the clock of the publication. */
double planned_half_width(struct publication *publication, double rows, double rate);

/* Returns the half-width of a statistic whose noise has this standard deviation. */
double statistic_half_width(const struct publication *publication, double stddev);

/* Sets the mechanism of a request that does not name one. The publication has the tiers and the
** place of the request's tier among them, and, if `found`, the release that has the request's name.
** At a tier whose accountant does not cover Gaussian noise, this is the first mechanism of the kind
** whose noise the tier covers. A category gets the mechanism for epsilons (mechanism/mechanism.h)
** if all tiers that pay add up epsilons alone. For one quantile without keys at the outermost tier,
** it is the draw of a leaf (leaf_release.c) if this is more precise. At other tiers, for models,
** for dp_merge(), and for kinds without such a mechanism, the default of the kind stays. The choice
** depends on public parameters only. Returns 1, or 0 after setting the ledger's error. */
int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found);

/* Returns whether releases with Gaussian and with Laplace noise may share the budget of a tier. */
int tier_covers_all_noise(const struct ledger_tier *tier);

/* Returns the number of rows from which one value of a release is computed: all rows, or the rows
** of one group. Both numbers are guesses in the request. Without a guess, returns NaN. */
double plan_rows(const struct request *request);

/* If the request of dp_plan() or dp_batch() has a half_width, sets its weight to the least whose
** 95% half-width is at most this number. Call plan_weight() inside a transaction. Returns 1, or 0
** with the error of the session set. */
int plan_weight(struct request *request, struct session *session);

/* Returns the part of the tier's delta_keys that the selection of private keys may use. Each
** publication of the release uses this part anew. */
double numbers_selection_delta(const struct publication *publication);

/* Returns the threshold of the publication's tier. A private key is published there if its noisy
** count is at least the threshold. A bin of bounds shows rows if its noisy count is above the
** threshold. `delta` is that of the selection of private keys. */
double numbers_threshold(const struct publication *publication, double delta);

/* What a release gives to one of its cross tables, or to the figure of one span of a series. */
struct part_width {
  double half_width; /* of each number; NaN for averages without a guess at the rows */
  double stddev;     /* estimate_total_stddev() */
  double cost; /* of this part alone, with the same noise, divided by the cost of the release */
};

/* For a release of cross tables, at the clock of the publication's tier: what each table gets.
** `rows` is a public guess at the number of rows, or NaN. Returns 1, or 0 after setting the
** ledger's error. */
int numbers_tables(const struct publication *publication, double rows, struct part_width *widths);

/* For a series, in the same way: what its noisiest period gets and, unless `total` is null, the
** total of all periods. The guess is divided evenly among the periods. */
int numbers_series(const struct publication *publication, double rows, struct part_width *period,
                   struct part_width *total);

/* Returns estimate_total_stddev() (mechanism/mechanism.h) at the clock of the publication's tier;
** for cross tables the largest, for a series that of the noisiest period. Returns NaN after setting
** the ledger's error if memory runs out, as numbers_half_width() does. */
double numbers_stddev(const struct publication *publication);

/* Returns estimate_half_width() (mechanism/mechanism.h) at the clock of the publication's tier. For
** cross tables and a series, `rows` is the number of all rows, and the result is the largest
** half-width of a table or a period. */
double numbers_half_width(const struct publication *publication, double rows);

/* ---- storing the values of a publication, and answering from them ---------------------------- */

/* Stores the publication and the values of a point, and sets the answer. If dp_mix() gave a kernel
** for this tier, applies the kernel to the values first. Returns 1, or 0 after setting the ledger's
** error. */
int values_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/* Sets the answer from the values that are stored at a tier. Returns 1, or 0 after setting the
** ledger's error. */
int values_read(struct publication *publication, const char *tier);

/* ---- computing a number of a stored point again (stored_point.c) ----------------------------- */

/* Sets [*low, *high] to the interval that a number published at the publication's tier would have
** with this confidence, computed from the stored point. The caller has set the session, the release
** and the position. Returns 1, or 0 after setting the ledger's error. */
int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high);

/* Hands over the numbers of a statistic that is inside the release (mechanism/mechanism.h), with
** their 95% intervals, computed from the stored point. The caller has set the same members. Returns
** 1, or 0 after setting the ledger's error, or if take() returns 0. */
int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context);

/* Does the same as interval_read() for a series, whose key may name any span of its published
** periods (periods.c). Ends the transaction of the caller before it computes, so that the ledger is
** not locked. */
int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high);

/* Makes all checks of dp_verify(): checks the accounts and the seals of the ledger (ledger/), and
** compares every publication with the stored point from which it was computed. Returns 'ok' or the
** first discrepancy, or null after setting the ledger's error. The caller calls sqlite3_free(). If
** the ledger is open for an audience (ledger/views.c), the discrepancy or error only says that
** verification failed. Call session_verify() inside a transaction. */
char *session_verify(struct session *session);

/* Tells the ledger the properties of a mechanism. */
describe_mechanism mechanism_describe;

/* ---- the steps of a release (publish.c) ------------------------------------------------------ */

/* Answers the request if the release is already published at this tier, or if the stored points are
** enough to publish it there without reading data. Otherwise charges for the new release, or for
** the refinement, which draws a less noisy point of a stored release. Takes over the request's list
** of keys. The caller must call publish_clear() afterwards, even after an error. Returns 1, or 0
** after setting the session's error. */
int publish_begin(struct publication *publication, struct session *session,
                  struct request *request);

/* Computes what the charge of the request needs and what takes long, while the ledger is not locked
** (struct computation). publish_begin() calls this function itself. dp_batch() calls it for each
** request before its transaction begins, and deferred_forget() after the transaction. Returns 1, or
** 0 after setting the session's error. */
int publish_prepare(struct session *session, const struct request *request);

/* Does the work of publish_begin() inside a transaction of the caller, for dp_batch(). Returns 1,
** or 0 after setting the session's error. */
int publish_enter(struct publication *publication, struct session *session,
                  struct request *request);

/* Draws from the totals, stores the result and sets the answer. If possible, the same commit also
** publishes the result at the outer tiers of the request, and the member `spread` becomes 1.
** Returns 1, or 0 after setting the session's error. After a failure, the release is marked as
** failed. */
int publish_finish(struct publication *publication, const struct totals *totals);

/* Marks the release as failed. A failed release is never replayed or diffused, and its charge
** stays. If a refinement fails, nobody has seen a new value, so the release becomes 'released'
** again and its earlier publications stay valid. */
void publish_fail(struct publication *publication);

/* Plans a release inside the caller's transaction, which the caller must roll back. Makes the
** charge, so that the caller can read the charge from the ledger. Finishes the release as if all
** totals were 0, so that the next plan in the transaction can diffuse or refine the release.
** Returns 1, or 0 after setting the ledger's error. */
int publish_plan(struct publication *publication, struct session *session, struct request *request);

/* Publishes a stored release at an outer tier without reading data. Implements dp_diffuse(), and
** dp_mix() if `mixing` is not null. Returns 1, or 0 after setting the ledger's error. */
int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct mixing *mixing);

/* Publishes a stored release at the publication's tier, inside a transaction: reads the answer that
** the tier has, or publishes a point of the path there. With `may_refine`, begins to refine the
** release if the tier lies inside all points. The publication has its release, its tiers, and the
** mixing that dp_mix() applies to the numbers, if any. Returns 1, or 0 after setting the ledger's
** error. */
int publish_replay(struct publication *publication, int may_refine);

/* Empties the list of computations. */
void deferred_forget(struct session *session);

/* ---- series (series.c) ----------------------------------------------------------------------- */

/* Draws a secret for the book of allowances, in hexadecimal. Null: no random bytes, or no
** memory. */
char *series_secret(void);

/* What an append draws and computes for a tier that has a point. */
struct appended_tier {
  int is_published;       /* otherwise the tier only lies between two others */
  int64_t *values;        /* the points of the tier, of all periods to the appended one; owned */
  struct numbers numbers; /* the figures of the missing periods */
};

/* What an append computes. */
struct append {
  int period;                  /* the period that is asked for */
  int is_stale;                /* the series has changed meanwhile */
  int64_t seal;                /* the last one of the series when the append began */
  struct allowances *book;     /* owned */
  int128 *sums;                /* the exact sums of all periods to `period`, in fine steps; owned */
  struct ledger_path path;     /* the points before the append; owned */
  struct appended_tier *tiers; /* of the points; owned */
};

/* Begins to append a series up to a period. If the period has been published already, sets the
** answer (publication->answered). Otherwise sets publication->missing, and the caller counts the
** rows of these periods. Returns 1, or 0 after setting the session's error. The caller clears the
** append and the publication in both cases. */
int series_begin(struct publication *publication, struct session *session, const char *name,
                 const char *period, struct append *append);
void append_clear(struct append *append);

/* Counts a unit. The function has the signature of take_matrix (sums/sums.h). */
struct counting {
  const struct publication *publication;
  struct append *append;
};
int series_count(void *counting, struct identity unit, size_t count, const uint32_t *slots,
                 int128 *values);

/* Publishes the missing periods and sets the answer. Returns 1, or 0 with append->is_stale set, or
** 0 after setting the session's error. */
int series_finish(struct publication *publication, struct append *append);

/* Publishes a series at an outer tier, in a transaction of its own, after `publication` has charged
** and drawn with draws_only in a transaction that was rolled back, when `seal` was the last seal of
** the ledger. Computes the figures while the ledger is not locked. If the ledger has changed,
** stores nothing and sets no answer. Returns 1, or 0 after setting the session's error. */
int series_publish(struct publication *publication, int64_t seal);

/* Reads the points of a series that is published at the publication's tier, and sets
** publication->grid and its clock. *values has the points of the appended periods; the caller frees
** them with sqlite3_free(). The publication has its session and tiers, and its release. Returns 1,
** or 0 after setting the session's error. */
int series_points(struct publication *publication, int64_t **values);

/* ---- bounds (bounds.c) ----------------------------------------------------------------------- */

/* Noisy numbers of units whose one value lies between two powers of two, without regard to sign. */
struct bounds_counts {
  double list[LAYOUT_EXPONENTS + 1]; /* by size: 0, then (0, 2^least], and so on */
  double half_width;                 /* of the noise of each number, 95% */
  int signs;                         /* 2: both signs have units */
  int last; /* the largest size where the counts show units; 0: none above 0 */
};

/* The share of the total of all units that a clip cuts off: a 95% interval. */
struct bounds_cut {
  double low, high;
};

/* Reads the counts of a release of bounds at a tier where it is published. Call it inside a
** transaction. Returns 1, or 0 after setting the session's error. */
int bounds_counts_read(struct bounds_counts *counts, struct session *session, const char *name,
                       const char *tier);

/* Returns the upper end of the sizes at a place of the list. */
double bounds_size(int place);

/* Returns what a clip cuts off of units that lie within the bounds, by the idea of Fieller (1954).
** The interval covers the noise of the counts, and that a value may lie anywhere between its two
** powers of two. */
struct bounds_cut bounds_cut(const struct bounds_counts *counts, double clip);

/* ---- where published bounds may be used ------------------------------------------------------ */

/* Published bounds carry information. If another release takes its clip or its range from them,
** this information reaches every tier at which that release is published, through the clip and the
** lattice. The bounds may therefore be used at the tier where they were published, and inside this
** tier. An outer tier uses the bounds that dp_diffuse() published there. */

/* Checks that `request` takes no parameter from `bounds` that the outermost tier of the request
** does not see. `bounds` is a publication that has its answer. The function compares the parameter
** with the published ends, both without their signs. A parameter other than 0 counts as taken from
** an end if it equals an end that was published further in than the request's outermost tier. It
** does not count if it also equals an end that the outermost tier sees, or if it is the default. If
** `bounds` is of another kind, the function does nothing and returns 1. Otherwise returns 1, or 0
** with an error. Call bounds_use_check() inside a transaction. */
int bounds_use_check(const struct publication *bounds, const struct request *request);

#endif
