/* ledger.h: the durable record of all releases and of their costs.
**
** The room ledger/ owns the ledger file, its schema (sql/ledger.sql), every SQL statement on this
** file, and the marker: a table with one row in the host's database that names its ledger (open.c).
** It decides how much each tier pays (charge.c), and refuses a release that would exceed a budget
** (struct accountant). It does not draw noise, read the owner's rows or define SQL functions.
**
** Requirements, which the tests cite:
**   L1  Only ledger_create() creates a ledger.
**   L2  A ledger is written on a private connection, never on the host's connection. A ROLLBACK of
**       the host can therefore not take back a charge.
**   L3  If the ledger that a database's marker names is missing, or if another ledger is in its
**       place, every call fails. (open.c says when a ledger that was moved is still found.)
**   L4  All affected tiers are checked before any of them is charged, in one transaction.
**   L5  Charges are append-only and hash-chained; totals are exact or rounded up.
**   L6  After a fork(), the child cannot use the handle.
**   L7  If the host connection cannot write its database, the ledger is only read, unless a grant
**       pays (ledger_use_grant()).
**
** Unless a comment says otherwise: functions that return int return 1, or 0 with an error; a char *
** that is returned or set belongs to the caller, who calls sqlite3_free(); functions that read or
** write tables are called inside a transaction; take() is called for each row until it returns 0;
** and NULL is NaN in a double, a null pointer in a text, and 0 in members marked "0: NULL".
**
** Errors go to the struct error given to ledger_new(), "the ledger's error" in other rooms. After
** an error every later call does nothing and fails, so the caller can check for errors once at the
** end. ledger_ready(), ledger_create() and ledger_resume() clear the error first. */
#ifndef DIFFUSE_LEDGER_H
#define DIFFUSE_LEDGER_H

#include <math.h>
#include <sqlite3ext.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "math/math.h"

struct ledger;
enum { LEDGER_ANY = 0, LEDGER_UNITS, LEDGER_ROWS }; /* values of `protects` */
enum { LEDGER_ADD_REMOVE = 1, LEDGER_REPLACE };     /* values of `adjacency`; 0: not given */

/* The arguments of dp_init(). Null and 0 mean "not given". The caller owns the strings. */
struct ledger_terms {
  const char *path;
  const char *unit;
  int protects;
  int adjacency;
};

/* ---- accountants (budget.c) ------------------------------------------------------------------ */

/* An accountant adds up the costs of a tier's releases and decides when the tier's budget is spent.
** The rest of the code uses the members of this struct and never compares names.
**
** An accountant enforces a budget as a limit on one number, `total`: a zCDP rate for RDP and exact
** Gaussian accounting, an epsilon for pure differential privacy. RDP accounting has a second limit,
** on the sum of pure epsilons, and needs only one of the two. */
struct ledger_tier;
struct budget;
struct payment;
struct accountant {
  const char *name;    /* of dp_tier.accountant; the CHECK in sql/ledger.sql lists all names */
  const char *title;   /* the name in error messages */
  const char *theorem; /* the theorem that the certificate names */

  /* The budgets and releases that the accountant covers. A tier with this accountant refuses all
  ** others. The cost of a model to which dp_diffuse() added noise is proved for RDP only
  ** (models/models.h). */
  int has_delta;              /* 1: budgets may have a positive delta; 0: delta is 0 */
  int covers_rates;           /* 1: covers Gaussian noise, whose cost is a zCDP rate */
  int covers_curves;          /* 1: covers noise whose cost has an RDP curve beside a rate */
  int covers_diffused_models; /* 1: covers a model to which dp_diffuse() added noise */
  const char *refusal; /* a release that is not covered: the words after "tier '...'"; or null */

  /* reserve_slack() sets slack_limit, the part of delta that is set aside for the total variation
  ** distance between lattice noise and continuous noise, and returns 0 if it is not enough for one
  ** draw. draws_left() returns the number of draws that the remaining slack allows. Both are null
  ** if the accountant needs no slack. */
  int (*reserve_slack)(struct ledger_tier *tier);
  double (*draws_left)(const struct ledger_tier *tier, const struct budget *budget);

  /* Computes three members of a tier from the others. filter_order is the order at which the
  ** accountant adds up RDP curves, or NaN if it covers no curves. rate_limit is the limit on
  ** `total`. pure_limit is a limit on the sum of epsilons, or NaN if `total` counts alone. What was
  ** spent must be within one of the two limits. Returns 0 if the budget allows nothing to be
  ** spent. */
  int (*set_limit)(struct ledger_tier *tier);

  /* Returns the spent amount of the budget, in the unit of rate_limit; infinite if not covered. */
  struct total (*total)(const struct ledger_tier *tier, const struct budget *budget);

  /* Sets the error for a payment that does not fit the budget. The error says how much the payment
  ** needs and how much is left. Returns 0. */
  int (*refuse)(struct ledger *ledger, const struct ledger_tier *tier, const struct budget *before,
                const struct budget *after, const struct payment *payment);

  /* Returns the epsilon of a rate and a curve together, rounded up. `curve` holds values at the
  ** stored orders (math/math.h), or is null. The epsilon belongs to the part of the tier's delta
  ** that is for noise. */
  double (*epsilon)(const struct ledger_tier *tier, double rate, const double *curve);

  /* Returns the value of dp_order.allowed: the amount that the tier may spend at order alpha,
  ** negative if this order cannot prove the tier's (epsilon, delta), however little is spent. */
  double (*allowed)(const struct ledger_tier *tier, double alpha);

  /* Returns the least proven epsilon of `count` >= 1 budgets that are all spent completely, one
  ** after the other, rounded up. The delta is `count` times the tier's delta and must be below 1.
  ** The result may be NaN or larger than the sum of the epsilons; the caller then uses the sum.
  ** Null if the accountant only adds up epsilons. */
  double (*composed)(const struct ledger_tier *tier, double count);

  /* Convert the rate of one release to the most that the release costs in the unit of `total`, and
  ** such a cost back to a rate. The variance or scale of the noise is rounded up to an integer in
  ** lattice units, so a release can cost as little as least_part times cost_of_rate(). */
  double (*cost_of_rate)(double rate);
  double (*rate_of_cost)(double cost);
  double least_part;

  /* Returns the largest amount that a tier with this accountant can spend, converted to the `total`
  ** of an inner tier whose filter_order is `order`. */
  double (*most_at)(const struct ledger_tier *tier, double order);
};

/* The table of accountants, which ends with a null pointer. The first accountant is the default of
** dp_tier() and covers every release. */
extern const struct accountant *const accountants[];

/* Returns the accountant with this name, or null; the default accountant if `name` is null. */
const struct accountant *accountant_find(const char *name);

/* Returns the names for an error message, as in "'a', 'b' or 'c'". The caller calls sqlite3_free().
** Returns null if memory runs out. */
char *accountant_names(void);

/* ---- what the ledger stores ------------------------------------------------------------------ */

/* A tier, a release and a grant as the ledger stores them. The members have the names of columns,
** which sql/ledger.sql explains. The structs own their texts. */
struct ledger_tier {
  char *name;
  double rate, epsilon, delta, delta_keys;
  const struct accountant *accountant;
  double filter_order, rate_limit, pure_limit, slack_limit;
  char *period;
};

struct ledger_release {
  int64_t id;
  char *name, *kind, *mechanism;
  double clip, weight, centre, radius, theta, rho, lo, hi, grid;
  int diagnose; /* 0: NULL */
  double until, least;
  uint64_t stop; /* 0: NULL */
  double key_share;
  int size, max_groups; /* 0: NULL */
  char *quantiles, *keys, *ways, *multipliers, *periods;
  int appended; /* 0: NULL */
  char *secret, *unit_type, *model;
  int dimension; /* 0: NULL */
  int granularity, shift;
  uint64_t sensitivity;
  double slack;
  char *options, *sql, *statement, *fingerprint, *state;
};

struct ledger_grant {
  char *name, *tier;
  double share;
  int questions; /* 0: NULL */
  char *diffuse;
  int pad_ms;
  double seconds, steps, bytes;
};

/* A noisy point of a release: an integer, in lattice steps, for each coordinate. `clock` is the
** variance of the noise in squared lattice steps (mechanism/mechanism.h). */
struct ledger_point {
  char *tier;
  uint64_t clock;
  int64_t *values;
};

/* Describes the coordinates of a point. A point has `components` numbers for each of `cells` keys,
** in the order of the keys, and then `extra` numbers that belong to no key: those of the option
** diagnose. */
struct ledger_grid {
  char **keys; /* null: there is one cell, whose key is '' */
  int cells, components;
  int extra; /* at most LEDGER_EXTRA */
};
#define LEDGER_EXTRA 16

/* The path of a release: the points drawn for its tiers, the innermost (least clock) first. */
struct ledger_path {
  struct ledger_grid grid;
  struct ledger_point *points;
  int count;
};

/* ---- the handle (connection.c, open.c) ------------------------------------------------------- */

/* The results of the option diagnose: the noisy numbers of units that were clipped and that were
** not, and the share of the total that was cut off. All are NaN without the option. */
struct ledger_clipping {
  double clipped, unclipped;
  double stddev; /* of the noise in each of the two numbers */
  /* The share and its 95% interval. All are NaN if the release has no total, and `cut` is NaN if
  ** every share is possible. The upper end holds if no unit is more than `within` times as large as
  ** it may be; NaN: some are larger than can be told, and the upper end is 1. */
  double cut, cut_low, cut_high, within;
  /* The noisy numbers of wider units that were scaled down and that were not; NaN: none. */
  double wider_clipped, wider_unclipped;
};
#define NO_CLIPPING                                                                                \
  ((struct ledger_clipping){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN,       \
                            (double)NAN, (double)NAN, (double)NAN, (double)NAN})

/* Registers four SQL functions on a private connection of the ledger, which itself knows no kinds,
** and returns SQLite's result. R stands for the arguments WORDS_RELEASE, columns of a release `r`:
**   display(R, is_mixed, key, stddev, value, low, high)
**                         the column `display` of dp_value; is_mixed: a public kernel has changed
**                         the number (dp_mix)
**   figure(R, unit, is_mixed, threshold, clipped, unclipped, unit_stddev, cut, cut_low, cut_high,
**          cut_within, wider_clipped, wider_unclipped, wider, factor)
**                         what the numbers of a publication are, in words; unit: NULL if the ledger
**                         protects rows; wider: the wider unit, which counts as at most `factor`
**                         units, or NULL
**   component(R, component)
**                         what a component means: '20 to 40', 'upper end'; '' for a single number
**   exact(x)              the JSON text of a number with all its digits */
#define WORDS_RELEASE                                                                              \
  "r.kind, r.mechanism, r.quantiles, r.ways, r.periods, r.clip, r.lo, r.hi, r.grid, r.centre,"     \
  " r.theta, r.radius, r.size, r.max_groups"
typedef int register_words(sqlite3 *db);

struct ledger *ledger_new(sqlite3 *host, register_words *words, struct error *error);
void ledger_free(struct ledger *ledger);

/* Opens the ledger of the host's main database, or checks that the open ledger is still the right
** one (L3, L6). */
int ledger_ready(struct ledger *ledger);

/* dp_init(): creates or finds the ledger and writes the marker. */
int ledger_create(struct ledger *ledger, const struct ledger_terms *terms);

/* The terms of the open ledger: LEDGER_UNITS or LEDGER_ROWS, LEDGER_ADD_REMOVE or LEDGER_REPLACE,
** and the word for a unit, such as 'patient', or null if dp_init() got no such word. */
int ledger_protects(const struct ledger *ledger);
int ledger_adjacency(const struct ledger *ledger);
char *ledger_unit(struct ledger *ledger);
const char *ledger_path(const struct ledger *ledger); /* ":memory:" for an in-memory ledger */

/* Returns the reason why the host's connection can only read (L7), or null if it can write. */
const char *ledger_read_only(const struct ledger *ledger);

/* Returns the file name of the host's main database, or null if this database is in memory. */
const char *ledger_database(const struct ledger *ledger);

/* Returns whether a path means a file of the host's database or of the open ledger. */
int ledger_has_file(const struct ledger *ledger, const char *path);

/* Returns the struct error that was given to ledger_new(). */
struct error *ledger_error(const struct ledger *ledger);

/* Returns a JSON parser that stops when the host is interrupted, and sets the ledger's error. */
struct json *ledger_json(struct ledger *ledger);

/* Clears the error and checks the open connection, without reading the host's database. For the end
** of a release; may be called while SQLite finalizes a statement. After ledger_resume_patiently(),
** for the draw, transactions wait longer for locks, but an interrupt of the host ends the wait. */
int ledger_resume(struct ledger *ledger);
int ledger_resume_patiently(struct ledger *ledger);

/* Begin and end transactions on the private connection. After a failure only ledger_rollback() has
** an effect; ledger_commit() then rolls back and returns 0.
**
** Use ledger_begin() to charge, create or discard. If the host may only read (L7) and no grant is
** set, the transaction can read, and its first statement that writes fails with the reason. */
int ledger_begin(struct ledger *ledger);
int ledger_begin_reading(struct ledger *ledger); /* reads one snapshot; the caller rolls back */
int ledger_begin_trial(struct ledger *ledger);   /* for few writes; the caller rolls back */
int ledger_begin_ending(struct ledger *ledger);  /* to end a charged release */
int ledger_begin_copy(struct ledger *ledger);    /* for long work; uses a copy of the ledger */

/* Returns whether charges in a copy of the ledger were more than the connection's grant has left.
** In the ledger itself such a charge fails. */
int ledger_overdrawn(const struct ledger *ledger);

/* Begins a long computation that reads nothing from the ledger, so it takes no lock. The rounding
** mode is that of a transaction. The caller calls ledger_goes_on() from time to time, and rolls
** back at the end. */
int ledger_begin_computing(struct ledger *ledger);
int ledger_commit(struct ledger *ledger);
void ledger_rollback(struct ledger *ledger);

/* Returns 0 with an error if the host is interrupted. Fast enough to be called in a loop. */
int ledger_goes_on(struct ledger *ledger);

/* Lets an interrupt of the host end the statements of a connection `db` that the caller has opened
** (never the host's own), while a transaction or a computation of the ledger is open. */
void ledger_watch(struct ledger *ledger, sqlite3 *db);

/* ---- tiers and charges (tier.c, charge.c, budget.c) ------------------------------------------ */

/* Reads the tiers, the innermost first. Call ledger_tiers_free() also after a failure. */
int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count);
void ledger_tiers_free(struct ledger_tier *tiers, int count);

/* Returns the index of the tier with this name, or -1 with an error that lists the known tiers. */
int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name);

/* In a transaction of their own: creates a tier, unless the same tier exists already; drops a tier
** that has no charges, permanently; keeps what the owner chose for the page of a tier
** (null: of all), a JSON object ('{}': nothing), unless the ledger has the same. */
int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *tier);
int ledger_tier_drop(struct ledger *ledger, const char *name);
int ledger_page_set(struct ledger *ledger, const char *tier, const char *options);

/* Returns whether dp_tier.period can have this value. */
int ledger_period_is_known(const char *period);

/* Move the budgets of all tiers to their current periods, in a transaction that will be rolled
** back: one that can write, or one that only reads. The latter continues on a copy of the ledger in
** memory if a period is over. */
int ledger_enter_periods(struct ledger *ledger);
int ledger_read_periods(struct ledger *ledger);

/* Charges the publication of a release at tiers[at]. Each of the tiers 0 to `at` pays the part of
** the cost that it has not yet paid for this release. If one of them refuses, the function charges
** nothing, and the error says why. */
int ledger_charge(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, const struct cost *cost);

/* Gives back what tiers 0 to `at` have paid for a release beyond the cost of its innermost
** publication at the tier or outside it, as rows of dp_charge with a negative rate. `slack` is the
** lattice slack of the draws that were made. Only a release with the option until has something to
** give back. Call this function in the transaction that stores the values. */
int ledger_return(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, double slack);

/* The id of the last charge, or 0; and what a tier was charged after a charge, in the unit of its
** rate_limit (struct accountant). */
int64_t ledger_last_charge(struct ledger *ledger);
double ledger_charged_since(struct ledger *ledger, int64_t charge, const struct ledger_tier *tier);

/* Finds the rate of the first charge for a release, which is that of the point that was drawn
** first. Returns 1 if there is such a charge, and 0 otherwise or on failure. */
int ledger_first_rate(struct ledger *ledger, int64_t release_id, double *rate);

/* The budget of a tier, with the values of dp_budget. */
struct ledger_standing {
  double spent_epsilon, remaining_epsilon;
  int64_t releases_left;
};
int ledger_standing(struct ledger *ledger, const char *tier, struct ledger_standing *standing);

/* How many times the sum of all charges after the charge with the id `charge` can be paid again,
** before a tier refuses or the grant of the connection is used up (-1: there are no such charges);
** the index of the tier that would refuse first; and the name of its current period, such as
** 'January 2026', or ''. */
struct ledger_repeats {
  int64_t count;
  int tier;
  char period[32];
};
int ledger_repeats(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                   int64_t charge, struct ledger_repeats *repeats);

/* Returns, as JSON, the exposure of a person who saw exactly the publications at the chosen tiers,
** of one release or (null) of all. */
char *ledger_exposure(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                      int count, const char *release);

/* What the ledger, which knows no mechanisms, must know to check publications and name theorems. */
struct ledger_mechanism {
  const char *name, *theorem;
  int shrinks;       /* 1: published values shrink towards a centre */
  int has_rate;      /* 1: a publication costs the rate of its clock; 0: a curve */
  int may_have_rate; /* 1: a publication costs a curve or, instead, a rate */
  /* The RDP, at order alpha, of a publication; null if the clock does not determine the curve. */
  double (*rdp)(uint64_t sensitivity, uint64_t clock, double alpha);
  /* 1: the mechanism trains a model step by step, and later steps can hide the row that an earlier
  ** step used. The stored curve may then be below rdp(). If the publication also has a delta, rdp()
  ** says nothing about its curve. */
  int hides;
};

/* Describes the mechanism with this number, from 0 on. Returns 0 if there is no such mechanism. */
typedef int describe_mechanism(int number, struct ledger_mechanism *mechanism);

/* The first part of dp_verify(). Recomputes all totals from dp_charge and compares them with the
** stored totals. Checks that every publication was paid for. */
int ledger_verify(struct ledger *ledger, describe_mechanism *describe);

/* The last part of dp_verify(). Checks the states of releases, their names in all tables and the
** types of columns. Compares all sealed rows with their seals, and the schema with sql/ledger.sql.
** Then runs SQLite's own integrity check. */
int ledger_verify_seals(struct ledger *ledger);

/* A check of dp_verify() returns 1 if it has found nothing. A discrepancy is an error of the
** ledger, so that all further checks do nothing. ledger_discrepancy() sets it and returns 0.
** ledger_verdict() ends the verification: it returns 'ok' or the discrepancy, whose error it
** clears, or null on another error. */
int ledger_discrepancy(struct ledger *ledger, const char *format, ...);
char *ledger_verdict(struct ledger *ledger);

/* Returns the certificate for an auditor, as JSON, or null on error. `verified` is the result of
** ledger_verify(). */
char *ledger_certificate(struct ledger *ledger, const char *verified, describe_mechanism *describe);

/* ---- releases, points and values (store.c) --------------------------------------------------- */

/* Find the release that has this name and is not discarded, or the one with this id. Return 1 if
** there is such a release, and 0 otherwise or on failure. */
int ledger_release_find(struct ledger *ledger, const char *name, struct ledger_release *release);
int ledger_release_get(struct ledger *ledger, int64_t id, struct ledger_release *release);
void ledger_release_clear(struct ledger_release *release);

/* Reports that there is no release of this name. Returns 0. */
int ledger_release_unknown(struct ledger *ledger, const char *name);

/* Returns the exact parameters of a release as one text. A later request for the same name must
** have the same fingerprint. */
char *ledger_fingerprint(const struct ledger_release *release);

/* Stores a new release in state 'charged'. Sets its id, and its name if it has none. */
int ledger_release_insert(struct ledger *ledger, struct ledger_release *release);

/* Fails if the rows of a release differ from its last seal. Call it before you use the rows. */
int ledger_trust_release(struct ledger *ledger, int64_t id);

/* Return the id of the last seal, of a release or of all, or 0 on failure. Every commit that
** changes the release, or anything, appends a seal. */
int64_t ledger_release_seal(struct ledger *ledger, int64_t id);
int64_t ledger_last_seal(struct ledger *ledger);

/* Moves a release from one state to another. Fails if it is in a third one. */
int ledger_release_state(struct ledger *ledger, int64_t id, const char *from, const char *to);

/* Sets the clock at which a release with the option until was accurate enough. */
int ledger_release_stop(struct ledger *ledger, int64_t id, uint64_t stop);

/* Sets the lattice slack of all draws of a release so far (dp_release.slack). */
int ledger_release_slack(struct ledger *ledger, int64_t id, double slack);

/* Reads the path of a release whose points have the components and extra numbers of `grid`. Call
** ledger_path_free() also after a failure. */
int ledger_path_read(struct ledger *ledger, const struct ledger_release *release,
                     struct ledger_grid grid, struct ledger_path *path);
void ledger_path_free(struct ledger_path *path);
/* Returns whether a release has a point. */
int ledger_path_exists(struct ledger *ledger, int64_t release_id);

int ledger_path_insert(struct ledger *ledger, const struct ledger_release *release,
                       const struct ledger_grid *grid, const struct ledger_point *point);

/* Stores a publication. `clipping` is NO_CLIPPING without the option diagnose. `threshold` is the
** noisy count that a private key needs, or NaN. `kernel` is the Markov kernel that made the
** publication from the next inner point, or null. */
int ledger_publication_insert(struct ledger *ledger, const struct ledger_release *release,
                              const char *tier, uint64_t clock, const struct cost *cost,
                              double shrink, struct ledger_clipping clipping, double threshold,
                              const char *kernel);

/* Find a publication, and set *clock, or *kernel to a copy of its kernel (null: none). Return 1 if
** it exists, and 0 otherwise or on failure. */
int ledger_publication_find(struct ledger *ledger, int64_t release_id, const char *tier,
                            uint64_t *clock);
int ledger_kernel_find(struct ledger *ledger, int64_t release_id, const char *tier, char **kernel);

/* Stores the symbol of a release at a tier, as a point of its path. */
int ledger_symbol_insert(struct ledger *ledger, const struct ledger_release *release,
                         const char *tier, const char *symbol);

/* The publications of a release, from the innermost tier outward. `kernel` made the publication;
** null: it was drawn from the data. */
struct ledger_stage {
  const char *tier, *kernel;
  const double *curve; /* values at the stored orders (math.h) */
};
int ledger_stages(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_stage *stage), void *context);

/* The counts of a publication that counts symbols (of a category: one, drawn), by symbol. */
int ledger_reports(struct ledger *ledger, int64_t release_id, const char *tier,
                   int (*take)(void *context, const char *symbol, int64_t count), void *context);

/* ---- series (store.c) ------------------------------------------------------------------------ */

/* Adds coordinates to the point of a release at a tier. The grid has the new cells, and `values`
** has the coordinates of these cells. */
int ledger_point_extend(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const struct ledger_grid *grid, const int64_t *values);

/* Sets the numbers of clipped and of other units of a publication. */
int ledger_publication_clipping(struct ledger *ledger, int64_t release_id, const char *tier,
                                struct ledger_clipping clipping);

/* Store how many periods of a series have been appended; delete its exact sums, its book of
** allowances and its secret. */
int ledger_series_append(struct ledger *ledger, int64_t release_id, int appended);
int ledger_series_forget(struct ledger *ledger, int64_t release_id);

/* An exact sum of a series. `value` is a whole number in decimal. */
struct ledger_exact {
  const char *period, *key;
  int component;
  const char *value;
};
int ledger_exact_insert(struct ledger *ledger, int64_t release_id, const struct ledger_exact *sum);
int ledger_exacts(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_exact *sum), void *context);

/* The book of allowances, as parts in their order: reads, deletes all, and inserts one. */
int ledger_allowances(struct ledger *ledger, int64_t release_id,
                      int (*take)(void *context, const void *units, int size), void *context);
int ledger_allowance_clear(struct ledger *ledger, int64_t release_id);
int ledger_allowance_insert(struct ledger *ledger, int64_t release_id, int part, const void *units,
                            int size);

/* Returns the current day in UTC, such as 2026-03-31. */
char *ledger_today(struct ledger *ledger);

/* Finds a tier whose rate is at least `rate` and whose current budget ends on the day `last` or
** before (null: ever). Returns 1 and sets *tier and *end, the last day of its budget, or 0. */
int ledger_budget_ends(struct ledger *ledger, double rate, const char *last, char **tier,
                       char **end);

/* A published value. */
struct ledger_value {
  const char *key; /* '' without keys */
  int component;
  double value, stddev, low, high;
};

int ledger_value_insert(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const struct ledger_value *value);

/* The values of a publication, in the order of keys and components; with the columns `display`
** (null without a value), `figure` and `label` of dp_value. */
int ledger_values(struct ledger *ledger, int64_t release_id, const char *tier,
                  int (*take)(void *context, const struct ledger_value *value), void *context);
typedef int ledger_take_words(void *context, const struct ledger_value *value, const char *display,
                              const char *figure, const char *label);
int ledger_values_in_words(struct ledger *ledger, int64_t release_id, const char *tier,
                           ledger_take_words *take, void *context);

/* Finds one value and its stddev. Returns 1 if it exists, and 0 otherwise or on failure. */
int ledger_value_find(struct ledger *ledger, int64_t release_id, const char *tier, const char *key,
                      int component, double *value, double *stddev);

/* All publications, release by release. The struct has columns of dp_publication. */
struct ledger_publication {
  int64_t release_id;
  const char *tier;
  uint64_t clock;
  double rate, shrink, centre, delta;
  struct ledger_clipping clipping;
  double threshold;    /* NaN: none */
  const double *curve; /* values at the stored orders (math.h); null: no curve */
};
int ledger_publications(struct ledger *ledger,
                        int (*take)(void *context, const struct ledger_publication *publication),
                        void *context);

/* ---- spending (charge.c) --------------------------------------------------------------------- */

/* The days on which a tier was charged, in the order of periods and days. `share` is the fraction
** of the tier's limit that was spent by the end of the day (budget_used()). In a tier with periods,
** only the charges of the same period count. */
struct ledger_spending {
  const char *tier, *period, *day; /* `period` is the first day of the period, or null */
  double share;
};
int ledger_spending_read(struct ledger *ledger, const char *tier,
                         int (*take)(void *context, const struct ledger_spending *spending),
                         void *context);

/* ---- grants (grant.c) ------------------------------------------------------------------------ */

/* The largest pad_ms of a grant, in milliseconds (sql/ledger.sql). */
#define GRANT_MOST_PAD 60000

/* Creates a grant, a part of a budget that the owner sets aside for questions of other people, in a
** transaction of its own. Each answer is also published at the `count` tiers in `outward`. The
** function reserves a share of the remaining budget at the grant's tier, at every tier inside it,
** and at outer tiers up to the outermost in `outward`. If the grant has a number of questions, the
** function sets its share. Does nothing if a grant with this name and the same parameters exists,
** and fails if they differ. */
int ledger_grant_create(struct ledger *ledger, struct ledger_grant *grant,
                        const char *const *outward, int count);

/* Finds a grant, or fails. Call ledger_grant_clear() in both cases. */
int ledger_grant_find(struct ledger *ledger, const char *name, struct ledger_grant *grant);
void ledger_grant_clear(struct ledger_grant *grant);

/* ---- the policy (policy.c) ------------------------------------------------------------------- */

/* The declarations of dp_protect() and dp_public() say which tables hold protected rows, and which
** unit each row belongs to. query/query.h compares them with the tables of the database. */
enum policy_role { POLICY_PROTECTED, POLICY_PUBLIC };

/* A declaration. Its texts belong to the caller that received the struct. */
struct ledger_declaration {
  char *table;
  enum policy_role role;
  char *unit_column; /* holds the unit id, or refers to the parent; null: each row is a unit */
  char *parent;      /* null: unit_column holds the unit id */
  /* a public table: its columns and the name of its mark (query/query.h) */
  char *definition, *mark;
};

/* The wider unit, which the table of the units declares (dp_within). `name` is null if there is
** none. */
struct ledger_wider {
  char *name, *table, *column;
  double factor; /* it counts no more than this many units */
  char *since;   /* when it was declared */
};

struct ledger_policy {
  struct ledger_declaration *list; /* in the order in which they were declared */
  int count;
  struct ledger_wider wider;
  /* 1: questions may name views. The members of a tier may not: nobody has declared what the text
  ** of a view tells. */
  int admits_views;
};

/* Reads the declarations. Fails if they differ from their last seal. Free also after a failure. */
int ledger_policy_read(struct ledger *ledger, struct ledger_policy *policy);
void ledger_policy_free(struct ledger_policy *policy);

/* Fails, with an error that says how to protect a table, if a policy protects none. */
int ledger_policy_need(struct ledger *ledger, const struct ledger_policy *policy);

/* Returns the declaration of a table, or null. Names are compared without regard to case. */
const struct ledger_declaration *ledger_policy_find(const struct ledger_policy *policy,
                                                    const char *table);

/* Adds a declaration, or turns a public table into a protected table. If the column or the parent
** of a protected table is gone from the schema, replaces it by the new one. Declares a public table
** anew if it has another definition or mark. Does nothing if the same declaration exists, and
** refuses any other change. Also refuses to make a table public that may be a protected table under
** a new name. */
int ledger_policy_declare(struct ledger *ledger, const struct ledger_declaration *declaration);

/* Declares the wider unit of the ledger. Does nothing if the same declaration exists. Replaces the
** table or the column if it is gone from the schema. Refuses any other change, and a declaration
** after the first charge. */
int ledger_policy_widen(struct ledger *ledger, const struct ledger_wider *wider);

/* Removes the wider unit of this name, or the declaration of a table. Fails if the ledger has a
** charge, or if the table declares the wider unit or is the parent of another one. */
int ledger_policy_undeclare(struct ledger *ledger, const char *name);

/* Decides whether rows may be read for a release that was charged in this transaction. `tables`, a
** JSON object that lists the tables of the rows, such as {"visit":"protected"}, is stored in the
** row of the release. Null: the tables are unknown, and the function refuses. */
int ledger_policy_admit(struct ledger *ledger, int64_t release_id, const char *tables);

/* Returns f, how many units a wider unit of the ledger (dp_within) may count. Returns 0 if none is
** declared, or after setting the ledger's error. */
double ledger_wider_factor(struct ledger *ledger);

/* Sets *epsilon to the epsilon of the wider unit for what a tier has spent so far, or to NaN if
** there is none. Returns 0 with the ledger's error. */
int wider_spent(struct ledger *ledger, const struct ledger_tier *tier, double *epsilon);

/* ---- the audience of one tier (connection.c) ------------------------------------------------- */

/* Hands the host connection to the members of a tier. The tables and the certificate then show only
** what they may know (views.c), and the ledger no longer corrects its path in the marker. If `tier`
** is null, the connection belongs to the owner again: at the end of a report, or if it could not be
** restricted. ledger_audience() returns the tier, or null for the owner. */
int ledger_guest(struct ledger *ledger, const char *tier);
const char *ledger_audience(const struct ledger *ledger);

/* Sets the grant that pays for the later charges of the connection, even if the host cannot write
** its database. Null: the owner pays. */
int ledger_use_grant(struct ledger *ledger, const char *grant);

/* Sets the connection through which the ledger reads the database that it belongs to. At first this
** is the connection that loaded the extension, which ledger_caller() returns. */
void ledger_use_database(struct ledger *ledger, sqlite3 *db);
sqlite3 *ledger_caller(const struct ledger *ledger);

/* Sets *version to a number that changes with every commit to the ledger's file, without taking a
** lock. Returns 0 if the number cannot be read. */
int ledger_version(const struct ledger *ledger, uint32_t *version);

/* Returns whether the caller's connection is interrupted. It looks at most every 20 milliseconds,
** and returns 0 in between. Call ledger_caller_end() afterwards, so that no statement stays open
** there. */
int ledger_caller_interrupted(struct ledger *ledger);
void ledger_caller_end(struct ledger *ledger);

/* ---- reading tables for the host (views.c) -------------------------------------------------- */

/* A column that the host sees. `sql` is the expression that computes it for the owner; null: it is
** stored. `seen` is the expression for the members of a tier; null: they get NULL. */
struct shown_column {
  const char *name, *type, *sql, *seen;
};

/* A table that the host may see. */
struct ledger_table {
  const char *name;
  const struct shown_column *columns; /* up to a null name */
  const char *shown;                  /* a condition for the owner's rows; null: all rows */
  const char *order;                  /* null: any order */
  int by_period; /* 1: it holds totals of periods; read it after ledger_read_periods() */
  const char *seen, *seen_order; /* the FROM clause for the members of a tier (views.c) */
};
extern const struct ledger_table ledger_tables[];
extern const int ledger_table_count;

/* Returns a table's columns for CREATE TABLE, as in "name TEXT, rate REAL", or null. */
char *ledger_table_declaration(const struct ledger_table *table);

/* Return the table with a name, and the index of a column from 0 on. Both must exist. */
const struct ledger_table *ledger_table_named(const char *name);
int ledger_table_index(const struct ledger_table *table, const char *column);

/* Returns whether ledger_table_read() finds all rows whose column with an index equals a value by
** SQLite's rules of comparison. If not, an affinity can make the two equal, as in '07' = 7. */
int ledger_table_finds(const struct ledger_table *table, int column, sqlite3_value *value);

/* The rows of a table in which, for every i, the column with the index wanted[i] (from 0 on) IS
** values[i]. The function finalizes its statement before it returns. */
typedef int ledger_take_row(void *context, sqlite3_stmt *row, int columns);
int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context);

#endif
