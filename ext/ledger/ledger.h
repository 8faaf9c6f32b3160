/*
** ledger.h: the durable record of all releases and of their costs.
**
** ledger/ owns the ledger file, its schema (sql/ledger.sql), every SQL statement about it, and the
** marker in the host's database. It decides how much each tier pays (charge.c) and refuses a
** release that would exceed a budget (accountant.h). It does not draw noise, read the owner's rows
** or define SQL functions.
**
** Requirements, which the tests cite:
**   L1  Only ledger_create() creates a ledger.
**   L2  A ledger is written on a private connection, never on the host's, so that no ROLLBACK of
**       the host can take a charge back.
**   L3  A database whose marker names a ledger that is missing, foreign or moved refuses
**       everything.
**   L4  Checks come before charges, for all affected tiers, in one transaction.
**   L5  Charges are append-only and hash-chained; totals are exact or rounded up.
**   L6  After a fork the handle refuses.
**   L7  For a host connection that cannot write its database, the ledger is only read.
**
** The ledger reports errors to the struct error given to ledger_new(). After an error every later
** call does nothing and fails, so the caller can check once at the end. ledger_ready() and
** ledger_create() clear the error first. Functions that return int return 1 for success and 0 for
** failure, unless their comment says otherwise.
*/
#ifndef DIFFUSE_LEDGER_H
#define DIFFUSE_LEDGER_H

#include <sqlite3ext.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "ledger/columns.h"
#include "math/cost.h"

struct ledger;
enum { LEDGER_ANY = 0, LEDGER_UNITS, LEDGER_ROWS }; /* protects */
enum { LEDGER_ADD_REMOVE = 1, LEDGER_REPLACE };     /* adjacency; 0 is any */

/* The arguments of dp_init(). Null and 0 mean "not given". The caller owns the strings. */
struct ledger_terms {
  const char *path;
  const char *unit;
  int protects;
  int adjacency;
  int unchecked; /* 1: no policy; the owner alone vouches for queries */
};

/*
** A tier and a release as stored: one member per column (columns.h). The structs own their texts.
*/
struct ledger_tier {
  TIER_COLUMNS(COLUMN_MEMBER)
};

struct ledger_release {
  RELEASE_COLUMNS(COLUMN_MEMBER)
};

/* A point of a path: a lattice integer for each coordinate. */
struct ledger_point {
  char *tier;
  uint64_t clock;
  int64_t *values;
};

/*
** The meaning of the coordinates of a point: `components` numbers for each of `cells` keys, in the
** order of the keys.
*/
struct ledger_grid {
  char **keys; /* null: one cell, whose key is '' */
  int cells, components;
};

/* The points of a release, the innermost (least clock) first. */
struct ledger_path {
  struct ledger_grid grid;
  struct ledger_point *points;
  int count;
};

/* ---- the handle (connection.c, open.c, create.c, transaction.c) ------------------------------ */

/*
** Returns whether the numbers of a release cannot be negative: counts, and what is computed from x
** in [lo, hi] with lo >= 0. lo is NaN without a range. The ledger itself knows no kinds.
*/
typedef int kind_is_positive(const char *kind, double lo);

struct ledger *ledger_new(sqlite3 *host, kind_is_positive *is_positive, struct error *error);
void ledger_free(struct ledger *ledger);

/*
** Opens the ledger of the host's main database. If it is open already, checks that it still is the
** right one (L3, L6).
*/
int ledger_ready(struct ledger *ledger);

/* dp_init(): creates or finds the ledger and writes the marker. */
int ledger_create(struct ledger *ledger, const struct ledger_terms *terms);

/*
** The terms of the open ledger: whether it protects units or rows (LEDGER_UNITS, LEDGER_ROWS), and
** its adjacency.
*/
int ledger_protects(const struct ledger *ledger);
int ledger_adjacency(const struct ledger *ledger);
const char *ledger_path(const struct ledger *ledger); /* ":memory:" for an in-memory ledger */

/* Why the host's connection can only read (L7), or null. */
const char *ledger_read_only(const struct ledger *ledger);

/* The file of the host's main database, or null if it lives in memory. */
const char *ledger_database(const struct ledger *ledger);

/* The struct error that was given to ledger_new(). */
struct error *ledger_error(const struct ledger *ledger);

/* A JSON parser that stops when the host is interrupted and reports to the same struct error. */
struct json *ledger_json(struct ledger *ledger);

/*
** Clears the error and goes on with the open connection, without reading the host's database. For
** the end of a release, which may run while SQLite finalizes a statement.
*/
int ledger_resume(struct ledger *ledger);

/* The same for the draw of a release: waits longer for locks, until the host is interrupted. */
int ledger_resume_patiently(struct ledger *ledger);

/*
** Transactions on the private connection. After a failure only ledger_rollback() has an effect.
** ledger_commit() rolls back and returns 0 if any call before it failed.
**
** Use ledger_begin() to charge, create or discard. If the host may only read (L7), the transaction
** can read, and its first statement that writes fails with the reason.
*/
int ledger_begin(struct ledger *ledger);
int ledger_begin_reading(struct ledger *ledger); /* one snapshot; end it with a rollback */
int ledger_begin_trial(struct ledger *ledger);   /* for plans: writes; end it with a rollback */
int ledger_begin_ending(struct ledger *ledger);  /* to end a charged release */
int ledger_begin_copy(struct ledger *ledger);    /* for long work, on a copy */
int ledger_commit(struct ledger *ledger);
void ledger_rollback(struct ledger *ledger);

/* ---- tiers and charges (tier.c, charge.c, budget.c) ------------------------------------------ */

/* Reads the tiers, the innermost first. Free the array with ledger_tiers_free(). */
int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count);
void ledger_tiers_free(struct ledger_tier *tiers, int count);

/* The index of a tier, or -1 with an error that lists the known tiers. */
int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name);

/* Creates a tier, in a transaction of its own. Does nothing if the same tier exists already. */
int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *tier);

/* Whether dp_tier.period can be this. */
int ledger_period_is_known(const char *period);

/*
** Bring the budgets of all tiers to their current periods, in a transaction that the caller will
** roll back. The first is for transactions that can write. The second is for those that only read:
** if a period is over, it goes on with a copy.
*/
int ledger_enter_periods(struct ledger *ledger);
int ledger_read_periods(struct ledger *ledger);

/* Drops a tier that has no charges, permanently, in a transaction of its own. */
int ledger_tier_drop(struct ledger *ledger, const char *name);

/*
** Charges the publication of a release at tiers[at]. Tiers 0 to `at` each pay the part of the cost
** that they have not yet paid for this release. The function checks all of them first. If one
** refuses, it charges nothing, and the error names the tier, the amount needed and the amount left.
** Call it inside a transaction.
*/
int ledger_charge(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, const struct cost *cost);

/*
** ledger_last_charge(): the id of the last charge, 0 for none. ledger_charged_since(): the rate
** that a tier was charged after it. A curve counts as the rate that costs the same at the tier's
** filter order.
*/
int64_t ledger_last_charge(struct ledger *ledger);
double ledger_charged_since(struct ledger *ledger, int64_t charge, const char *tier);

/*
** Finds the rate of the first charge for a release: that of its first point. Returns 1 if found.
*/
int ledger_first_rate(struct ledger *ledger, int64_t release_id, double *rate);

/* The budget of a tier as dp_budget shows it. */
struct ledger_standing {
  double spent_epsilon, remaining_epsilon;
  int64_t releases_left;
};
int ledger_standing(struct ledger *ledger, const char *tier, struct ledger_standing *standing);

/*
** The exposure of a person who saw exactly the publications at the chosen tiers, as JSON
** (sqlite3_free).
*/
char *ledger_exposure(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                      int chosen_count);

/*
** What the ledger has to know of a mechanism to check its publications and to name its theorem. The
** ledger itself knows no mechanism: its caller describes them.
*/
struct ledger_mechanism {
  const char *name, *theorem;
  int shrinks;  /* what is shown shrinks to a centre */
  int has_rate; /* a publication costs the rate of its clock; otherwise it costs a curve */
  /* The curve of a publication at its clock; null where it does not follow from the clock. */
  double (*rdp)(uint64_t sensitivity, uint64_t clock, double alpha);
  int hides; /* the curve may be below that; with a delta, it may be any */
};

/* Describes the mechanism with this number, from 0 on. Returns 0 where there is none. */
typedef int describe_mechanism(int number, struct ledger_mechanism *mechanism);

/*
** Recomputes everything from dp_charge, inside a transaction. Returns 'ok' or the first discrepancy
** (sqlite3_free), or null on error.
*/
char *ledger_verify(struct ledger *ledger, describe_mechanism *describe);

/*
** The last part of dp_verify(): checks states and names, compares everything with its seal, and
** compares the schema with that of the format. Returns the first discrepancy, or null if there is
** none or on error.
*/
char *ledger_verify_seals(struct ledger *ledger);

/*
** Formats a discrepancy (sqlite3_free). Out of memory, it sets the error and returns null, because
** null alone would mean that nothing was found.
*/
char *ledger_discrepancy(struct ledger *ledger, const char *format, ...);

/*
** The certificate for an auditor, as JSON (sqlite3_free). `verified` is the result of
** ledger_verify(). Null on error.
*/
char *ledger_certificate(struct ledger *ledger, const char *verified, describe_mechanism *describe);

/* ---- releases, points and values (store.c), inside a transaction ----------------------------- */

/*
** Finds the release with this name that is not discarded. Returns 1 if found, 0 if not found or on
** failure.
*/
int ledger_release_find(struct ledger *ledger, const char *name, struct ledger_release *release);
void ledger_release_clear(struct ledger_release *release);

/*
** The exact parameters of a release as one text (sqlite3_free). A later request for the same name
** must have the same fingerprint.
*/
char *ledger_fingerprint(const struct ledger_release *release);

/* Stores a new release in state 'charged'. Sets its id, and its name if that is null. */
int ledger_release_insert(struct ledger *ledger, struct ledger_release *release);

/* Fails if the rows of a release differ from its seal. Call it before the rows are used. */
int ledger_trust_release(struct ledger *ledger, int64_t id);

/* Moves a release from one state to another. Fails unless exactly one row changes. */
int ledger_release_state(struct ledger *ledger, int64_t id, const char *from, const char *to);

/* Sets the total slack of a release. */
int ledger_release_slack(struct ledger *ledger, int64_t id, double slack);

/*
** Reads the path of a release that has this number of components for each key. Call
** ledger_path_free() also after a failure.
*/
int ledger_path_read(struct ledger *ledger, const struct ledger_release *release, int components,
                     struct ledger_path *path);
void ledger_path_free(struct ledger_path *path);
int ledger_path_insert(struct ledger *ledger, const struct ledger_release *release,
                       const struct ledger_grid *grid, const struct ledger_point *point);

/*
** Insert and find a publication. kernel: the Markov kernel that made it from the next inner point,
** or null. Finding returns 1 and the clock if found, 0 if not found or on failure.
*/
int ledger_publication_insert(struct ledger *ledger, const struct ledger_release *release,
                              const char *tier, uint64_t clock, const struct cost *cost,
                              double shrink, const char *kernel);
int ledger_publication_find(struct ledger *ledger, int64_t release_id, const char *tier,
                            uint64_t *clock);

/* Finds a publication and the kernel that made it (sqlite3_free; null: no kernel). */
int ledger_kernel_find(struct ledger *ledger, int64_t release_id, const char *tier, char **kernel);

/* Stores the symbol of a release at a tier, as a point of its path. */
int ledger_symbol_insert(struct ledger *ledger, const struct ledger_release *release,
                         const char *tier, const char *symbol);

/*
** Calls take() for each symbol of a release, the innermost first, until it returns 0. symbol is the
** one on the path, shown the published one; null if there is none. curve is at the stored orders
** (renyi.h).
*/
struct ledger_symbol {
  const char *tier, *symbol, *shown, *kernel;
  const double *curve;
};
int ledger_symbols(struct ledger *ledger, int64_t release_id,
                   int (*take)(void *context, const struct ledger_symbol *symbol), void *context);

/*
** The first calls take() for each publication of a release, the innermost first, with the kernel
** that made it (null: it was drawn from the data). The second is for a publication that counts
** symbols: it calls take() for each count, in the order of the symbols. Both stop when take()
** returns 0.
*/
struct ledger_stage {
  const char *tier, *kernel;
  const double *curve; /* at the stored orders */
};
int ledger_stages(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_stage *stage), void *context);
int ledger_reports(struct ledger *ledger, int64_t release_id, const char *tier,
                   int (*take)(void *context, const char *symbol, int64_t count), void *context);

/* A published value. */
struct ledger_value {
  const char *key; /* '' without keys */
  int component;
  double value, stddev, low, high;
};
int ledger_value_insert(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const struct ledger_value *value);

/*
** Calls take() for each value of a publication, in the order of keys and components, until it
** returns 0.
*/
int ledger_values(struct ledger *ledger, int64_t release_id, const char *tier,
                  int (*take)(void *context, const struct ledger_value *value), void *context);

/* Finds one value and the standard deviation of its noise. Returns 1 if found. */
int ledger_value_find(struct ledger *ledger, int64_t release_id, const char *tier, const char *key,
                      int component, double *value, double *stddev);

/*
** Calls take() for every publication, release by release, with the columns that the publication
** itself stores.
*/
struct ledger_publication {
  int64_t release_id;
  const char *tier;
  uint64_t clock;
  double shrink, centre, delta;
  const double *curve; /* at the stored orders (renyi.h); null: none */
};
int ledger_publications(struct ledger *ledger,
                        int (*take)(void *context, const struct ledger_publication *publication),
                        void *context);

/* Reads a release by its id, also if it is discarded. */
int ledger_release_get(struct ledger *ledger, int64_t id, struct ledger_release *release);

/* ---- spending (spending.c) ------------------------------------------------------------------- */

/*
** Calls take() for each day on which a tier was charged, in the order of periods and days, until it
** returns 0. `share` is the part of the tier's budget that was spent by the end of the day, in
** terms of the accountant's limit; in a tier with periods, the part of the budget of the period.
*/
struct ledger_spending {
  const char *tier, *period, *day; /* period: its first day, or null */
  double share;
};
int ledger_spending_read(struct ledger *ledger, const char *tier,
                         int (*take)(void *context, const struct ledger_spending *spending),
                         void *context);

/* ---- the audience of one tier (connection.c) ------------------------------------------------- */

/*
** Hands the host connection to the members of a tier. The tables and the certificate then show what
** these members may know (audience.h), and the marker in the database is not corrected. A null tier
** takes it back: where the connection could not be guarded, and at the end of a report.
** ledger_audience() returns the tier, or null for the owner.
*/
int ledger_guest(struct ledger *ledger, const char *tier);
const char *ledger_audience(const struct ledger *ledger);

/* ---- reading tables for the host (tables.c) -------------------------------------------------- */

/* A table that the host may see. */
struct ledger_table {
  const struct table_columns *columns;
  const char *shown;   /* SQL condition for the rows that the host may see; null: all */
  const char *order;   /* SQL order of the rows; null: any order */
  int by_period;       /* holds totals of periods: read it after ledger_read_periods() */
  const char *display; /* SQL expression of one more column, "display TEXT"; null: none */
};
extern const struct ledger_table ledger_tables[];
extern const int ledger_table_count;

/*
** Its columns for CREATE TABLE, as in "name TEXT, rate REAL" (sqlite3_free; null: out of memory).
*/
char *ledger_table_declaration(const struct ledger_table *table);

/* The name of its column at a place, from 1; null beyond the last one. */
const char *ledger_table_column(const struct ledger_table *table, int place);

/*
** Calls take() for each row of a table in which every column wanted[i] IS values[i]. Finishes the
** statement before it returns. Call it inside a transaction.
*/
typedef int ledger_take_row(void *context, sqlite3_stmt *row, int columns);
int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context);

#endif
