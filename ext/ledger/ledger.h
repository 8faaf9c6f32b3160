/*
** ledger.h: the durable record of what has been released and what it has cost.
**
** ledger/ owns the ledger file, its schema (sql/ledger.sql), every SQL statement about it, and the
** marker in the host's database. It decides who pays what (charge.c) and refuses what would exceed
** a budget (accountant.h). It knows nothing of noise, of rows, or of SQL functions.
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
** Errors go where ledger_new() was told. After an error every later call is a no-op that fails, and
** the caller asks once; ledger_ready() and ledger_create() clear the error first. Functions that
** return int return 1 for success and 0 for failure, unless they say otherwise.
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

/* What dp_init() asks for; null and 0 mean "not said". Strings are the caller's. */
struct ledger_terms {
  const char *path;
  const char *unit;
  int protects;
  int adjacency;
  int unchecked; /* the ledger has no policy: the owner alone vouches for queries */
};

/* A tier and a release as stored, one member for each column (columns.h). Texts are owned. */
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
** What the coordinates of a point stand for: `components` of each of `cells` keys, in their order.
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

/* ---- the handle (open.c) --------------------------------------------------------------------- */

struct ledger *ledger_new(sqlite3 *host, struct error *error);
void ledger_free(struct ledger *ledger);

/* Opens the ledger of the host's main database, or checks that it still is the one (L3, L6). */
int ledger_ready(struct ledger *ledger);

/* dp_init(): creates or finds the ledger and leaves the marker. */
int ledger_create(struct ledger *ledger, const struct ledger_terms *terms);

/* What an open ledger protects: LEDGER_UNITS or LEDGER_ROWS, and its adjacency. */
int ledger_protects(const struct ledger *ledger);
int ledger_adjacency(const struct ledger *ledger);
const char *ledger_path(const struct ledger *ledger); /* ":memory:" for an in-memory ledger */

/* Where the ledger reports its errors: the caller's, as given to ledger_new(). */
struct error *ledger_error(const struct ledger *ledger);

/* A parser of JSON that heeds the host's interrupt and reports its errors to the same place. */
struct json *ledger_json(struct ledger *ledger);

/*
** A clean slate on the connection that is open already, without a look at the host's database: for
** the end of a release, which may come while SQLite tears a statement down.
*/
int ledger_resume(struct ledger *ledger);

/* The same for the draw of a release: waits long for others, until the host is interrupted. */
int ledger_resume_patiently(struct ledger *ledger);

/*
** Transactions on the private connection. After a failure only ledger_rollback() does anything.
** ledger_commit() returns 0 and rolls back when anything before it failed.
**
** ledger_begin() is for what charges, creates or discards. Where the host may only read (L7), its
** transaction reads, and the first statement in it that writes fails with the reason.
*/
int ledger_begin(struct ledger *ledger);
int ledger_begin_reading(struct ledger *ledger); /* one consistent view; ends with a rollback */
int ledger_begin_trial(struct ledger *ledger);   /* for plans: writes, and ends with a rollback */
int ledger_begin_ending(struct ledger *ledger);  /* ends a release that was charged already */
int ledger_begin_copy(struct ledger *ledger);    /* the same for long work: others can write */
int ledger_commit(struct ledger *ledger);
void ledger_rollback(struct ledger *ledger);

/* ---- tiers and charges (tier.c, charge.c, budget.c) ------------------------------------------ */

/* Tiers, the innermost first. The array is freed with ledger_tiers_free(). */
int ledger_tiers(struct ledger *ledger, struct ledger_tier **tiers, int *count);
void ledger_tiers_free(struct ledger_tier *tiers, int count);

/* The index of a tier, or -1 with an error that lists the known ones. */
int ledger_tier_find(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                     const char *name);

/* Creates a tier, in a transaction of its own; the same tier again is a no-op. */
int ledger_tier_create(struct ledger *ledger, const struct ledger_tier *tier);

/* Drops a tier that nothing was charged to, for ever, in a transaction of its own. */
int ledger_tier_drop(struct ledger *ledger, const char *name);

/*
** Charges the publication of a release at tiers[at]: every tier at `at` or inside it pays what the
** release costs it beyond what it has paid already. Checks all of them first; if one refuses,
** nothing is charged and the error says which, what it needs and what is left. Inside a
** transaction.
*/
int ledger_charge(struct ledger *ledger, const struct ledger_release *release,
                  const struct ledger_tier *tiers, int count, int at, const struct cost *cost);

/*
** The last charge, 0 for none; and the rate that a tier has been charged after it, where a curve
** counts as the rate that costs the same at the tier's filter order.
*/
int64_t ledger_last_charge(struct ledger *ledger);
double ledger_charged_since(struct ledger *ledger, int64_t charge, const char *tier);

/* The standing of a tier as dp_budget shows it. */
struct ledger_standing {
  double spent_epsilon, remaining_epsilon;
  int64_t releases_left;
};
int ledger_standing(struct ledger *ledger, const char *tier, struct ledger_standing *standing);

/*
** What someone has been exposed to who saw exactly the publications at `names` (JSON,
** sqlite3_free).
*/
char *ledger_exposure(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                      int chosen_count);

/* Recomputes everything from dp_charge, inside a transaction. 'ok' or the first discrepancy
** (sqlite3_free); null on error. */
char *ledger_verify(struct ledger *ledger);

/*
** The part of dp_verify() that comes last: states and names fit, nothing differs from its seal, and
** the schema is that of the format. Null: nothing was found, or an error.
*/
char *ledger_verify_seals(struct ledger *ledger);

/*
** What ledger_verify() and its callers have found, as a text (sqlite3_free). Null says that nothing
** was found: where there is no memory for the text the ledger fails instead.
*/
char *ledger_discrepancy(struct ledger *ledger, const char *format, ...);

/*
** All an auditor needs, as JSON (sqlite3_free); `verified` is what ledger_verify() said. Null on
** error.
*/
char *ledger_certificate(struct ledger *ledger, const char *verified);

/* ---- releases, points and values (store.c), inside a transaction ----------------------------- */

/* Finds the release of that name that is not discarded: 1 found, 0 not found or failure. */
int ledger_release_find(struct ledger *ledger, const char *name, struct ledger_release *release);
void ledger_release_clear(struct ledger_release *release);

/* The parameters of a release, exactly: what a name asked again must match (sqlite3_free). */
char *ledger_fingerprint(const struct ledger_release *release);

/* Stores a new release in state 'charged' and sets its id, and its name where that is null. */
int ledger_release_insert(struct ledger *ledger, struct ledger_release *release);

/*
** Fails where the rows of a release are not those that diffuse stored: to be asked before anything
** is made of them.
*/
int ledger_trust_release(struct ledger *ledger, int64_t id);

/* Moves a release from one state to another; exactly one row must change. */
int ledger_release_state(struct ledger *ledger, int64_t id, const char *from, const char *to);

/* Sets the total slack of a release. */
int ledger_release_slack(struct ledger *ledger, int64_t id, double slack);

/*
** The path of a release with so many components for each key. ledger_path_free() also after
** failure.
*/
int ledger_path_read(struct ledger *ledger, const struct ledger_release *release, int components,
                     struct ledger_path *path);
void ledger_path_free(struct ledger_path *path);
int ledger_path_insert(struct ledger *ledger, const struct ledger_release *release,
                       const struct ledger_grid *grid, const struct ledger_point *point);

/*
** A publication; kernel: null, or what made it of the point inside. Find: 1 found (and then its
** clock), 0 not found or failure.
*/
int ledger_publication_insert(struct ledger *ledger, const struct ledger_release *release,
                              const char *tier, uint64_t clock, const struct cost *cost,
                              double shrink, const char *kernel);
int ledger_publication_find(struct ledger *ledger, int64_t release_id, const char *tier,
                            uint64_t *clock);

/* Whether there is a publication, and the kernel that made it (sqlite3_free; null for none). */
int ledger_kernel_find(struct ledger *ledger, int64_t release_id, const char *tier, char **kernel);

/* The symbol of a release at a tier: the point of its path. */
int ledger_symbol_insert(struct ledger *ledger, const struct ledger_release *release,
                         const char *tier, const char *symbol);

/*
** Hands over the symbols of a release, the innermost first, with what is published of them, until
** take() returns 0. symbol, shown: null where there is none; curve: at the stored orders (renyi.h).
*/
struct ledger_symbol {
  const char *tier, *symbol, *shown, *kernel;
  const double *curve;
};
int ledger_symbols(struct ledger *ledger, int64_t release_id,
                   int (*take)(void *context, const struct ledger_symbol *symbol), void *context);

/*
** Hands over the publications of a release, the innermost first, with the kernels that made them
** (null: of the data); and the points of one of them whose points are counts of symbols, in the
** order of these. Until take() returns 0.
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
** Hands over the values of a publication in the order of keys and components, until take() returns
** 0.
*/
int ledger_values(struct ledger *ledger, int64_t release_id, const char *tier,
                  int (*take)(void *context, const struct ledger_value *value), void *context);

/* One value with the standard deviation of its noise: 1 found. */
int ledger_value_find(struct ledger *ledger, int64_t release_id, const char *tier, const char *key,
                      int component, double *value, double *stddev);

/* Hands over every publication, release by release: what it says of itself. */
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

/* A release by its id, discarded ones too. */
int ledger_release_get(struct ledger *ledger, int64_t id, struct ledger_release *release);

/* ---- reading tables for the host (tables.c) -------------------------------------------------- */

/* A table that the host may see. */
struct ledger_table {
  const struct table_columns *columns;
  const char *shown; /* the condition on rows that the host may see; null: all */
  const char *order; /* of the rows, as people expect it: of events; null: any */
};
extern const struct ledger_table ledger_tables[];
extern const int ledger_table_count;

/* Its columns for CREATE TABLE, as in "name TEXT, rate REAL" (sqlite3_free), or null. */
char *ledger_table_declaration(const struct ledger_table *table);

/*
** Copies the rows of a table in which column wanted[i] equals values[i] (with IS), inside a
** transaction, and finishes the statement before it returns. Every value of every row is handed to
** `take`, row by row.
*/
typedef int ledger_take_row(void *context, sqlite3_stmt *row, int columns);
int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context);

#endif
