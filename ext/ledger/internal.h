/* internal.h: what the files of ledger/ share. The banners name the file that a part belongs to. */
#ifndef DIFFUSE_LEDGER_INTERNAL_H
#define DIFFUSE_LEDGER_INTERNAL_H

#include <stddef.h>

#include "base/hash.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "os/os.h"

#define MEMORY_PATH      ":memory:"
#define LEDGER_FORMAT    1                  /* the format of sql/ledger.sql */
#define LEDGER_MOST_NAME 255                /* the most bytes of a name or label */
#define LEDGER_MOST_ROWS ((int64_t)1 << 52) /* the most charges, seals or releases */

/* ---- the handle (connection.c) --------------------------------------------------------------- */

/* What the open transaction has changed. The commit seals these changes (seal.c). */
struct touched {
  int64_t *subjects; /* ids of releases, SEAL_TERMS, SEAL_ORDERS */
  int count;
  int books;   /* 1: the transaction has changed dp_budget */
  int trusted; /* 1: the transaction has compared terms and budgets with their seals */
};

/* A statement that is prepared on a connection. */
struct prepared {
  const char *sql; /* its text, a literal; null: the slot is empty */
  sqlite3_stmt *prepared;
};
#define STATEMENT_SLOTS 256 /* more than there are statements */

struct ledger {
  sqlite3 *caller;     /* the connection that loaded the extension */
  sqlite3 *host;       /* the connection to the database: `caller`, or a private connection */
  sqlite3 *db;         /* the private connection, or null */
  struct error *error; /* receives all errors; owned by the caller */
  struct json json;
  register_words *words;
  char *path;              /* path of the ledger file, or MEMORY_PATH */
  char *id;                /* dp_ledger.id of the open ledger */
  struct process process;  /* the process that opened db (L6) */
  int protects, adjacency; /* terms of the open ledger */
  const char *read_only;   /* the reason why the host may only read, or null */
  int writes_refused;      /* 1: the open transaction must not write, because of read_only */
  int is_discrepant;       /* 1: the error is a discrepancy that dp_verify() has found */
  int correction_failed;   /* 1: the marker's path could not be corrected */
  char *audience;          /* the tier whose members use the host connection; null: the owner */
  char *grant;             /* the grant that pays for the connection's charges; null: the owner */
  struct touched touched;
  int rounding; /* the host's rounding mode while a transaction runs, or -1 */
  int unsynced; /* 1: db is set up for a trial; -1: not known */
  struct prepared statements[STATEMENT_SLOTS]; /* statements on db */

  /* Members that belong to a transaction: */
  intptr_t lock;       /* the lock that is held, or LOCK_FILE_NONE */
  char *lock_name;     /* the file of the lock */
  int heeds_host;      /* 1: if the host is interrupted, the transaction ends */
  int is_patient;      /* 1: wait longer for locks, because a failure would waste a charge */
  sqlite3_stmt *probe; /* the prepared probe, or null */
  int64_t looked;      /* time of the last run of the probe; milliseconds */
  int64_t deadline;    /* time at which waiting ends; milliseconds */
  sqlite3 *file;       /* the connection to the file while db is a copy, or null */
  int overdrawn;       /* 1: a grant has paid more than it has, which only a copy allows */
  struct prepared file_statements[STATEMENT_SLOTS]; /* the statements on `file` */
};

/* Set the error unless one is set already, and return 0. The format is that of sqlite3_mprintf. */
int ledger_fail(struct ledger *ledger, const char *format, ...);
int ledger_fail_damaged(struct ledger *ledger, const char *table);
int ledger_fail_sqlite(struct ledger *ledger); /* the last error of the private connection */

/* Checks the length of a name or label, which the error calls `what`. Null is no name, and
** passes. */
int ledger_check_name(struct ledger *ledger, const char *what, const char *name);

/* Makes room for one more element. `array` points to the pointer to the array, whose capacity is
** the next power of two, so only a full array grows. Returns 0 when out of memory. */
int ledger_make_room(struct ledger *ledger, void *array, int used, size_t size);

int same_texts(const char *a, const char *b); /* null equals null */
int ledger_is_memory(const struct ledger *ledger);

/* ---- statements (connection.c) --------------------------------------------------------------- */

/* A statement stands, as a literal, in the function that runs it, and is prepared once per
** connection. If the host may only read (L7), every statement that changes rows is refused. A
** statement that writes says what the commit must seal:
**   NOTHING      it reads
**   TRANSACTION  it begins or ends a transaction
**   RELEASE      the release whose id is the first parameter
**   TERMS        the terms, tiers, policy, grants and orders
**   BUDGET       the budgets
**   NEW_RELEASE  a release whose id is not known yet
**   POINT        a point of a release that the same transaction has touched already
**   CHAIN        rows that need no seal, because they are in a hash chain or because dp_verify()
**                recomputes them to the last bit */
enum change {
  CHANGES_NOTHING,
  CHANGES_TRANSACTION,
  CHANGES_RELEASE,
  CHANGES_TERMS,
  CHANGES_BUDGET,
  CHANGES_NEW_RELEASE,
  CHANGES_POINT,
  CHANGES_CHAIN
};

/* An SQL expression for the current time. Its value does not change during a statement. */
#define STATEMENT_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/* Resets a statement that reads, and binds its parameters. Each letter of `types` is one parameter:
** s for a text (null: NULL), d for a double (NaN: NULL), i for an int64_t, n for an int64_t (0:
** NULL), and b for a struct bytes. Returns null on failure. */
sqlite3_stmt *statement_bind(struct ledger *ledger, const char *sql, const char *types, ...);

/* Steps a statement. Returns 1 if there is a row. Otherwise resets the statement and returns 0;
** this may be the end or a failure. A statement that has given a row keeps it until it is bound
** again or the transaction ends. Outside a transaction, the caller resets it. */
int statement_row(struct ledger *ledger, sqlite3_stmt *prepared);

/* Binds and runs a statement that gives no rows. */
int statement_run(struct ledger *ledger, enum change changes, const char *sql, const char *types,
                  ...);

/* Bind and run a statement, and return the integer or a copy of the text in the first column of its
** first row, or 0 without a row or after a failure. The caller frees the text with
** sqlite3_free(). */
int64_t statement_integer(struct ledger *ledger, const char *sql, const char *types, ...);
char *statement_text(struct ledger *ledger, const char *sql, const char *types, ...);

/* Runs a statement that lists discrepancies: a table, the name of a row, and what is wrong with it.
** Sets the first one (ledger_discrepancy()) and returns 0, or returns 1 if there is none. */
int statement_discrepancy(struct ledger *ledger, const char *sql);

/* Resets all statements, and rolls back an open transaction. Keeps the lock. */
void statements_end(struct ledger *ledger);

/* Return a column's text, or null for NULL, and set the error if memory runs out (column_text()
** returns "" in both cases; a discrepancy that this feigns is not reported). column_borrow() and
** column_text() return SQLite's own text, which is valid until the next step, and column_copy() a
** copy, which the caller frees with sqlite3_free(). */
const char *column_borrow(struct ledger *ledger, sqlite3_stmt *statement, int column);
char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column);
const char *column_text(struct ledger *ledger, sqlite3_stmt *statement, int column);

/* Returns the bytes of a blob until the next step, or a null pointer for NULL. */
struct bytes column_bytes(sqlite3_stmt *statement, int column);

/* Returns the number in a column, or NaN for NULL. */
double column_number(sqlite3_stmt *statement, int column);

/* Reads key, component, value, stddev, low and high from the first columns of a row. */
struct ledger_value column_value(sqlite3_stmt *row);

/* The subjects that the open transaction changes, so that the commit seals them. The subject of a
** release is its id, which is above 0. */
#define SEAL_TERMS  0    /* dp_ledger, dp_tier, dp_policy, dp_grant, dp_page */
#define SEAL_ORDERS (-1) /* dp_order.allowed */
void touched_add(struct ledger *ledger, int64_t subject);
int touched_has(const struct ledger *ledger, int64_t subject);

/* ---- seals (seal.c) -------------------------------------------------------------------------- */

/* Fails if dp_ledger, dp_tier, dp_policy, dp_grant, dp_page, dp_budget or dp_reserve differs from
** its last seal. */
int seal_trust_books(struct ledger *ledger);

/* Finds a discrepancy between rows and their seals, or in their chain up to `last_charge`. */
int seals_verify(struct ledger *ledger, int64_t last_charge);

/* ---- the private connection (connection.c) --------------------------------------------------- */

/* Clears the error, rolls back, and sets how the following transactions wait. Fails after a
** fork(). */
int ledger_wake(struct ledger *ledger, int heeds_host, int is_patient);

/* Opens the file and takes its lock, which every read of a ledger needs. If the file belongs to
** another application, the function succeeds without the lock. connection_start() also makes the
** connection ready for transactions. */
int connection_open(struct ledger *ledger);
int connection_start(struct ledger *ledger);

/* Forgets an inherited connection without closing it. Closes any other connection while holding the
** lock: closing a file drops the locks that other copies of SQLite in this process have on it, so
** no other transaction may be running. */
void connection_close(struct ledger *ledger);

/* Fails if the connection was inherited by fork() (L6), or its file deleted or replaced
** meanwhile. */
int connection_check(struct ledger *ledger);

int connection_is_ledger(struct ledger *ledger); /* what the header of the open file says */

/* Sets the journal mode TRUNCATE, or fails. This writes to a file that somebody has turned into a
** WAL database, so the function then fails if the host may only read (L7). */
int connection_set_journal(struct ledger *ledger);

int connection_read_terms(struct ledger *ledger);

/* The texts of the columns dp_ledger.protects and dp_ledger.adjacency, by the constants
** LEDGER_UNITS and so on. Index 0 stands for the default. */
extern const char *const protects_name[3], *const adjacency_name[3];

/* Releases the lock that every transaction and every open connection holds. */
void lock_drop(struct ledger *ledger);

/* ---- finding and creating ledgers (open.c) --------------------------------------------------- */

extern const char *const ledger_schema; /* sql/ledger.sql */

/* ---- tiers, curves and budgets (budget.c) ---------------------------------------------------- */

/* The RDP that a cost has in addition to the RDP of its rate (math/math.h), at the stored orders
** (math/math.h) and at the filter order of one tier. */
#define CURVE_SIZE  (RENYI_ORDERS + 1)
#define AT_INFINITY (RENYI_ORDERS - 1)
#define AT_FILTER   RENYI_ORDERS
struct curve {
  int any; /* 0: the curve is zero at every order, and `values` is not set */
  double values[CURVE_SIZE];
};

/* Returns the curve of a cost, rounded up; 0 at a filter order that is NaN. */
struct curve curve_of(const struct cost *cost, double filter_order);

/* Returns, for each order, how far the curve `cost` exceeds the curve `paid`, or 0. */
struct curve curve_missing(const struct curve *cost, const struct curve *paid);

/* Adds one curve to another, rounded up. */
void curve_add(struct curve *sum, const struct curve *term);

/* Read a curve from a column, or from the bytes of a blob. NULL stands for no curve. Set the error
** if the blob is damaged. */
struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column);
struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored);

/* Returns the bytes that the ledger stores for a curve, or a null pointer if there is no curve. */
#define CURVE_BYTES (CURVE_SIZE * 8)
struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]);

/* What a tier has spent, or what a grant has spent at a tier. */
struct budget {
  struct total rate;
  double slack, delta;
  double curve; /* the total of the curves, at the filter order */
  double pure;  /* the total RDP at order infinity; infinite after a charge with a rate */
  int64_t releases;
};

/* An amount that a tier has paid or must pay for one release. In a return (ledger_return()), rate
** and slack are negative, and the others are 0. */
struct payment {
  struct total rate;
  double slack, delta;
  struct curve curve;
};

/* Reads a payment from the columns rate, slack, delta and curve, the first of a row. */
struct payment payment_read(struct ledger *ledger, sqlite3_stmt *row);

/* Returns whether what was spent is within the limits of the tier. */
int budget_within(const struct ledger_tier *tier, const struct budget *budget);

/* Returns the fraction of the tier's limits that was spent, at the order where it is smallest. */
double budget_used(const struct ledger_tier *tier, const struct budget *budget);

/* Adds a payment to what was spent. `first` is 1 if this is the first payment for its release. */
struct budget budget_after(const struct budget *budget, const struct payment *payment, int first);

/* Returns the epsilon that a tier has spent, for its delta without what is set aside for key
** selection and lattice slack, rounded up. `curve`: the sum of its curves, or null. */
double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve);

/* Returns how many times a tier can still pay an amount; infinity if the amount is 0. */
double budget_repeats(const struct ledger_tier *tier, const struct budget *spent,
                      const struct budget *amount);

/* budget_read() and budget_write() read and write the running totals of a tier; budget_write() also
** stores the columns that follow from them. orders_read() and orders_write() read and write the sum
** of the curves of its charges at the stored orders. */
int budget_read(struct ledger *ledger, const char *tier, struct budget *budget);
int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget);
struct curve orders_read(struct ledger *ledger, const char *tier);
int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve);

/* ---- periods of budgets (budget.c) ----------------------------------------------------------- */

/* PERIOD_START is SQL for the first day of the period that contains a time. PERIOD_END is SQL for
** the first day of the next period. `kind` is the kind of period, such as 'month'. All days are in
** UTC, and weeks begin on Monday (ISO 8601). Both results are NULL if the kind is NULL. */
#define PERIOD_START(kind, time)                                                                   \
  "(CASE " kind " WHEN 'day' THEN date(" time ") WHEN 'week' THEN"                                 \
  " date(" time ", '-6 days', 'weekday 1') WHEN 'month' THEN date(" time ", 'start of month')"     \
  " WHEN 'quarter' THEN date(" time ", 'start of month', '-' ||"                                   \
  " ((strftime('%m', " time ") - 1) % 3) || ' months')"                                            \
  " WHEN 'year' THEN date(" time ", 'start of year') END)"
#define PERIOD_END(kind, start)                                                                    \
  "date(" start ", CASE " kind " WHEN 'day' THEN '+1 day' WHEN 'week' THEN '+7 days'"              \
  " WHEN 'month' THEN '+1 month' WHEN 'quarter' THEN '+3 months' WHEN 'year' THEN '+1 year' END)"

/* SQL for the kind of period of the tier ?1. */
#define TIER_PERIOD "(SELECT period FROM dp_tier WHERE name = ?1)"

/* Returns the largest number of periods of an outer tier that can overlap one of an inner tier.
** Null never ends. Returns 0 if there is none: the inner period never ends, and the outer ones
** do. */
int period_overlaps(const char *inner, const char *outer);

/* Returns whether the period of a tier is over. */
int period_is_over(struct ledger *ledger);

/* Starts the period of a tier that begins on the day `start`. The totals of the tier become 0. */
int period_enter(struct ledger *ledger, const char *tier, const char *start);

/* Starts the current period of every tier whose rate is at least `rate` and whose period is over,
** and sets *entered to 1 if there is one. The caller must then update releases_left. */
int periods_enter(struct ledger *ledger, double rate, int *entered);

/* If a tier has a period, appends to a JSON object: `period`, its kind; `per_period`, the budget of
** one; and `all_periods`, the epsilon and delta if the whole budget was spent in each of the
** periods until now. */
void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json);

/* Writes the name of the tier's current period, such as 'January 2026', or ''. */
void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size);

/* Returns the first day of the period that a tier has entered, or null. The caller frees it. */
char *period_entered(struct ledger *ledger, const char *tier);

/* Returns whether a period of the tier can begin on a day (null: the tier has no periods). */
int period_begins_on(struct ledger *ledger, const struct ledger_tier *tier, const char *start);

/* ---- grants, and what is left beside them (grant.c) ------------------------------------------ */

/* Sets *room to a copy of the tier, whose limits are those that remain for the owner beside the
** grants. If `own` is not null, they are what the members of the tier `own` know, who do not know
** the grants whose own tiers are inside `own`. */
int reserves_room(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct ledger_tier *room);

/* Sets *room to a copy of the tier, whose limits are the amounts that the connection's grant has
** reserved at the tier, and *spent to the spent part of them. Returns 0 if the grant has no amounts
** at this tier. */
int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent);

/* Pays from the amounts that the connection's grant has reserved at a tier, or fails. */
int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment);

/* Reserves at a new tier, for each grant, what it still holds at the nearest outer tier, for whose
** charges the owner has just paid. Fails if the new tier has too little budget. */
int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer);

/* Update releases_left of every tier. all_budgets_left() reads the tiers itself. */
int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count);
int all_budgets_left(struct ledger *ledger);

/* Returns how many releases of weight 1 at tiers[at] all tiers that pay can afford, or -1. */
int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at);

/* Returns whether a name is '<grant>/<name>' and this grant exists. */
int grant_owns_name(struct ledger *ledger, const char *name);

/* Finds a discrepancy between grants, charges and budgets. */
int grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count);

/* ---- the wider unit (policy.c) --------------------------------------------------------------- */

/* The epsilon of a wider unit, for the same delta as the tier's and rounded up: for a total rate
** (or 0) and a total of pure epsilons, or for the whole budget of a tier. NaN if `factor` is 0. */
double wider_epsilon(const struct ledger_tier *tier, double rate, double pure, double factor);
double wider_budget(const struct ledger_tier *tier, double factor);

/* ---- charges (charge.c) ---------------------------------------------------------------------- */

/* A row of dp_charge, with two facts of other tables that its hash covers: the subject (SUBJECT
** below) and the rate of the tier. The struct does not own the texts; null stands for NULL. */
struct charge {
  int64_t id, release_id;
  const char *release, *tier, *subject;
  double tier_rate, rate, slack, delta;
  struct bytes curve;
  const char *at, *period, *grant_name, *kind;
};

/* Computes the hash of a charge after the charge whose hash is `previous`; both may be the same. */
void charge_hash(const char *previous, const struct charge *charge, char hash[HASH_SIZE]);

/* SQL for the subject of a charge, which the hash of the charge covers: the ledger's terms and the
** columns of the release that determine the sensitivity. */
#define SUBJECT(release_id)                                                                        \
  "(SELECT l.id || '/' || protects || '/' || adjacency || '/' || fingerprint || '/' ||"            \
  " granularity || '/' || shift || '/' || sensitivity FROM dp_ledger l, dp_release r"              \
  " WHERE r.id = " release_id ")"

/* Returns the amount that a tier has paid for a release so far, less what was returned; or by the
** charge with the id `last`. */
struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier);
struct payment paid_until(struct ledger *ledger, int64_t release_id, const char *tier,
                          int64_t last);

/* A return is rounded to a double towards 0. What it leaves exceeds what the tier owes by at most
** this part, because a charge is at most 2^15 times what is left of it. */
#define RETURN_ROUNDING 0x1p-37

/* Charges a new tier for everything that the nearest tier outside it has paid. */
int charge_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer);

/* ---- releases (store.c) ---------------------------------------------------------------------- */

/* Finds a release whose parameters or name are not those with which it was charged. */
int releases_verify(struct ledger *ledger);

/* ---- what the host sees (views.c) ------------------------------------------------------------ */

/* SQL that writes a number exactly. SQLite's own JSON functions write fewer digits. */
#define EXACTLY(x) "json(exact(" x "))"

/* SQL that reduces a time to its date. The time of day would show how long a release took, which
** depends on the rows of single units. */
#define DAY(time) "substr(" time ", 1, 10)"

/* Returns a copy of a certificate with what the audience of a tier may know, or null on error. */
char *views_certificate(struct ledger *ledger, const char *certificate, const char *tier);

#endif
