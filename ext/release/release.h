/* release.h: what this room offers to others: a request, which becomes a publication, and the steps
** that all releases share. */
#ifndef DIFFUSE_RELEASE_RELEASE_H
#define DIFFUSE_RELEASE_RELEASE_H

#include "base/error.h"
#include "base/json.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "release/kinds.h"
#include "sums/layout.h"

struct append;
struct numbered;
struct numbers;
struct publication;
struct session;

/* ---- the periods of a series (periods.c) ----------------------------------------------------- */

/* Numbers of periods, from 0. The span of the periods first..last, both included. */
struct span {
  int first, last;
};

struct periods {
  int references;
  int count;
  char **labels;
  struct numbered *sorted; /* the periods in the order of their labels (periods.c) */
  char *text;              /* the form in which the ledger stores the option */
};

/* Reads the text of the option. Returns null with the error set. */
struct periods *periods_open(struct json *json, const char *text);
void periods_release(struct periods *periods);

/* Returns the number of the period with this label, or -1. */
int periods_find(const struct periods *periods, const char *label);

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
void cross_keys_release(struct cross_keys *cross_keys);

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
  double until, least;          /* stop when it is accurate enough (noise_path.c) */
  double max_groups, key_share; /* parameters of the selection of private keys */
  double half_width;            /* dp_plan(): the requested 95% half-width */
  double rows_guess, key_guess; /* dp_plan(): public guesses at the number of rows and of groups */
  char *unit_word;              /* dp_plan(): the unit of the values, for the summary */
  char *bounds;                 /* dp_plan(): the name of a release of bounds; null: none */
  char *quantiles;              /* a number or a JSON array; null for kinds without quantiles */
  char *keys;              /* public keys as a sorted JSON array; null: no keys or private keys */
  char *keys_given;        /* the same in the order of the option, if that is another; or null */
  void *details;           /* the parameters that only this kind has (kinds.h); owned */
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

/* request_finish() sets the defaults of all parameters and checks the parameters against each
** other. request_finish_shape() does the same only for the parameters that determine the layout of
** the sums. Both return 1, or 0 with the error set. */
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

/* Returns the number of leaves that a request for quantiles has with a mechanism. If the options do
** not give it, a draw of a leaf (mechanism/mechanism.h) has more leaves than a tree, whose noise
** grows with them. */
double request_leaves(const struct request *request, const struct mechanism *mechanism);

/* Returns the half-width of the planned statistic at a rate, with the mechanism of the publication.
** The half-width is in the unit of the value if `rows` is a guess of the number of rows, and in the
** unit of the sums if `rows` is NaN. Sets the lattice and the clock of the publication. */
double planned_half_width(struct publication *publication, double rows, double rate);

/* Returns the number of rows from which one value of a release is computed: all rows, or the rows
** of one group. Both numbers are guesses in the request. Without a guess, returns NaN. */
double plan_rows(const struct request *request);

/* If the request of dp_plan() or dp_batch() has a half_width, sets its weight to the least whose
** 95% half-width is at most this number. Call plan_weight() inside a transaction. Returns 1, or 0
** with the error of the session set. */
int plan_weight(struct request *request, struct session *session);

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

/* The definition of a release (definition.c). After it is made or read from the ledger, only the
** lattice, the slack and the stop of its release change, as draws are made. */
struct definition {
  struct ledger_release release;
  const struct aggregate *aggregate; /* the aggregate of its kind */
  const struct mechanism *mechanism;
  double quantiles[LAYOUT_MAX_QUANTILES]; /* those that it publishes */
  int quantile_count;
  struct cross_keys *cross_keys;    /* cross tables; null: none */
  struct periods *periods;          /* a series; null: none */
  struct series series;             /* its matrix */
  char **groups;                    /* a series: the keys of its groups; null: none */
  struct contribution row_question; /* a series: what sums.h needs to add its rows; it takes */
  struct layout row_layout; /* each group in each period as a cell */
  struct contribution contribution; /* the parameters of a unit's contribution */
  struct layout layout;             /* the layout of a unit's vector */
  void *details;                    /* what only this kind has (kinds.h); owned */
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
  struct append *append;      /* what dp_append() computes (series.c); owned */
  int is_stale;               /* a series: it has changed while dp_append() computed */
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

/* Returns the tier at which the release is published. */
const struct ledger_tier *publication_tier(const struct publication *publication);

/* Loads the tiers and finds the publication's tier and, unless `name` is null, the release. The
** publication has its session and is empty otherwise. Compares the release with its seal, except
** for a series, whose thousands of rows are compared before something is stored. Returns 1 if the
** release exists. Sets the session's error if there is no such tier or if the seal differs, but not
** if there is no such release. */
int publication_open(struct publication *publication, const char *tier, const char *name);

/* Clears a publication and frees everything that it owns. */
void publish_clear(struct publication *publication);

/* Sets the contribution and the layout from the kind and the parameters, without a ledger. Returns
** 1, or 0 if memory ran out. */
int definition_layout(struct publication *publication, int keys, int replace);

/* Returns what the draw of a quantile by the mechanism 'exponential' depends on. */
struct leaf_draw definition_leaf_draw(const struct publication *publication);

/* Returns the shrink factor of the coordinates. For averages and other statistics that are not
** linear, the factor depends on the data. The function then returns 1, or 0 if the factor could be
** too small for a double. */
double definition_shrink(const struct publication *publication);

/* Returns the view of the release with the clock of the publication's tier. */
struct view definition_view(const struct publication *publication);

/* Stores a new release. Does nothing for a release that is stored already (dp_batch() finishes such
** a release). Returns 1, or 0 after setting the ledger's error. */
int definition_store(struct publication *publication);

/* ---- the numbers of a point (published_numbers.c) -------------------------------------------- */

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

/* Computes the figures of `count` spans of a series: the given one, and each next one a period
** later. `values` are the points of its first periods, as publication->grid has them. The groups
** have their order; the components of a group are those of a release of one period. */
int numbers_spans(const struct publication *publication, struct span span, int count,
                  double confidence, const int64_t *values, struct numbers *numbers);

/* Converts one of the numbers to the form that the ledger stores. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/* Returns the half-width of a statistic whose noise has this standard deviation. */
double statistic_half_width(const struct publication *publication, double stddev);

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

/* Sets the answer from the values that are stored at a tier. Returns 1, or 0 after setting the
** ledger's error. */
int values_read(struct publication *publication, const char *tier);

/* ---- computing a number of a stored point again (published_numbers.c) ------------------------ */

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

/* ---- verification (verify_points.c) ---------------------------------------------------------- */

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

/* Begins to append a series up to a period. If the period has been published already, sets the
** answer (publication->answered). Otherwise sets publication->missing, and the caller counts the
** rows of these periods. Returns 1, or 0 after setting the session's error. */
int series_begin(struct publication *publication, struct session *session, const char *name,
                 const char *period);

/* Counts a unit. The function has the signature of take_matrix (sums/sums.h). */
int series_count(void *publication, struct identity unit, size_t count, const uint32_t *slots,
                 int128 *values);

/* Publishes the missing periods and sets the answer. Returns 1, or 0 with publication->is_stale
** set, or 0 after setting the session's error. */
int series_finish(struct publication *publication);

/* Reads the points of a series that is published at the publication's tier, and sets
** publication->grid and its clock. *values has the points of the appended periods; the caller frees
** them with sqlite3_free(). The publication has its session and tiers, and its release. Returns 1,
** or 0 after setting the session's error. */
int series_points(struct publication *publication, int64_t **values);

/* Does the same as interval_read() for a series, whose key may name any span of its published
** periods (periods.c). Ends the transaction of the caller before it computes, so that the ledger is
** not locked. */
int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high);

/* ---- releases with a point at each tier (noise_path.c) --------------------------------------- */

/* The steps of path_procedure, for procedures that change others. */
int path_charge(struct publication *publication);
int path_draw(struct publication *publication, const int64_t *totals);
int path_keep(struct publication *publication);

/* Returns whether a release has the option until. */
int until_is_given(const struct ledger_release *release);

/* dp_plan(): returns the expected cost of a new release, divided by that of the ceiling, if each
** figure is `figure` and comes from `rows` rows; NaN if no rung has a half-width for them. */
double until_expected_part(struct publication *publication, double figure, double rows);

/* ---- releases of one quantile by the exponential mechanism (drawn_quantile.c) ---------------- */

/* Returns whether the mechanism can make a release of this kind with these parameters. */
int leaf_release_suits(const struct aggregate *aggregate, const struct ledger_release *release);

/* Returns the tilt of a draw at the publication's tier. The draw costs the tiers that pay for it a
** curve. If exact Gaussian accounting is among them, it costs all of them a rate
** (bounded_range_gaussian_rate()). */
struct tilt leaf_tilt(const struct publication *publication);

/* Returns the half-width of the 95% interval of the error of a draw of this rate if the rows are
** spread evenly over the range: in rows if `rows` is NaN. Otherwise `rows` is a guess of their
** number, and the result is in the unit of the values and includes half a leaf. */
double leaf_half_width(const struct publication *publication, double rows, double rate);

/* ---- what the numbers of a release are, in words (figure_words.c) ---------------------------- */

/* What the words about the numbers of a publication depend on beside their release. */
struct figure_facts {
  const char *unit; /* null: the ledger protects rows */
  int is_mixed;     /* a public kernel has changed the numbers (dp_mix) */
  double threshold; /* the noisy count that a private key needs; NaN: none */
  struct ledger_clipping clipping;
  const char *wider; /* the wider unit, which counts as at most `factor` units; null: none */
  double factor;
};

/* figure_words() returns what is counted, added up or averaged, how much of it one unit can
** contribute, and what did not arrive in the numbers: "rows, at most 5 of each member; groups below
** about 24 rows do not appear; about 12% was cut off, from 31% of members". figure_component()
** returns what one of several numbers is: "20 to 40", "upper end"; "" for a single number.
** figure_display() returns a number with noise as people write it, with its interval and how a
** public bound moves it: "13 (9 to 17), shrunk towards 0"; and figure_drawn() what was drawn
** without noise around it: a quantile, an end of bounds, or a symbol. They return null if memory
** runs out; the caller calls sqlite3_free(). */
char *figure_words(const struct ledger_release *release, const struct figure_facts *facts);
char *figure_component(const struct ledger_release *release, int component);
char *figure_display(const struct ledger_release *release, const struct ledger_value *value,
                     int is_mixed);
char *figure_drawn(const struct ledger_release *release, const struct ledger_value *value);

/* Appends which groups a release with private keys leaves out: "groups below about 24 rows do not
** appear". `unit` is null if the ledger protects rows. */
void figure_append_threshold(sqlite3_str *text, const char *kind, double clip, const char *unit,
                             double threshold);

/* ---- what clipping did to the units of a release: the option diagnose (figure_words.c) ------- */

/* The noisy counts of the option (sums/layout.h) are published, so all of this is post-processing.
*/

/* A share in [0, 1], and its interval. `share` is NaN if every share is possible. */
struct clipped_share {
  double share, low, high;
};

/* Returns the share of units that were clipped, with its 95% interval. If s is the true share, the
** number clipped (1 - s) - unclipped s consists of noise alone. The interval holds every share s
** for which this number is small enough to be noise (Fieller 1954). The denominator is the noisy
** sum of the two counts, never an exact number. */
struct clipped_share clipped_units(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping);

/* Returns the same of wider units. If none were counted, the share is NaN. */
struct clipped_share clipped_wider(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping);

/* What the sentence about the units of a release depends on. */
struct clipping_words {
  const char *unit; /* the ledger's name for a unit; null: "unit" */
  int by_unit;      /* 0: the ledger protects rows */
  const struct aggregate *aggregate;
  double clip;
  int keys_are_private;
  int is_series; /* clip is for all periods together, and nothing counts values outside lo and hi */
};

/* Returns what follows the share in the sentence, for example "of patients were cut down to the
** bound, because their total was beyond clip: a larger clip would lower the bias". If the share is
** NaN, returns the whole sentence. The caller calls sqlite3_free(). Returns null if memory runs
** out. */
char *clipping_words(const struct clipped_share *share, const struct clipping_words *words);

/* Returns how much of the total was cut off: "about 12% of the total was cut off (9% to 15%), if no
** patient has more than 4 times clip". The caller calls sqlite3_free(). Returns null if memory runs
** out. Of a wide interval it gives the ends. */
char *clipping_amount(const struct ledger_clipping *clipping, const struct clipping_words *words);

/* Returns the sentence, with the interval of the share if the sentence has no advice, and how much
** was cut off. The caller calls sqlite3_free(). Returns null if memory runs out. */
char *clipping_sentence(const struct clipped_share *share, const struct ledger_clipping *clipping,
                        const struct clipping_words *words);

/* Returns a share in percent, as the sentence gives it. */
int clipping_percent(double share);

/* ---- bounds (clip_bounds.c) ------------------------------------------------------------------ */

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
