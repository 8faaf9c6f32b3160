/*
** internal.h: the handle as ledger/ sees it, and the few verbs in which its SQL is run.
*/
#ifndef DIFFUSE_LEDGER_INTERNAL_H
#define DIFFUSE_LEDGER_INTERNAL_H

#include "ledger/columns.h"
#include "ledger/hash.h"
#include "ledger/ledger.h"
#include "os/process.h"
#include "math/renyi.h"
#include "math/total.h"

#define MEMORY_PATH ":memory:"

#define LEDGER_FORMAT 4 /* of sql/ledger.sql, where it is said how to change it */

/* Every statement on the ledger, prepared once per connection (statements.c holds the text). */
enum statement {
  BEGIN_WRITE,
  BEGIN_READ,
  COMMIT,
  ROLLBACK,
  TERMS_READ,
  TERMS_INSERT,
  POLICY_LIST,
  POLICY_INSERT,
  POLICY_TIGHTEN,
  POLICY_NOTE,
  TIER_LIST,
  TIER_INSERT,
  TIER_DROPPED,
  TIER_USED,
  TIER_DROP,
  BUDGET_DROP,
  ORDERS_DROP,
  BUDGET_INSERT,
  BUDGET_READ,
  ORDERS_READ,
  ORDER_WRITE,
  BUDGET_WRITE,
  BUDGET_LEFT,
  ORDER_INSERT,
  CHARGE_LAST,
  CHARGE_SUBJECT,
  CHARGE_INSERT,
  CHARGE_PAID,
  CHARGE_SINCE,
  CHARGE_PAID_EACH,
  MODEL_PAID,
  CHARGE_LIST,
  RELEASE_FIND,
  RELEASE_GET,
  RELEASE_INSERT,
  RELEASE_NAME,
  RELEASE_STATE,
  RELEASE_SLACK,
  PATH_READ,
  PATH_INSERT,
  PUBLICATION_INSERT,
  PUBLICATION_FIND,
  PUBLICATION_EACH,
  SYMBOL_LIST,
  STAGE_LIST,
  REPORT_LIST,
  VALUE_INSERT,
  VALUE_LIST,
  VALUE_FIND,
  STANDING,
  PUBLICATION_LIST,
  BUDGET_CHECK,
  ORDER_CHECK,
  RELEASE_CHECK,
  ORPHAN_CHECK,
  PUBLICATION_CHECK,
  CURVE_CHECK,
  STATE_CHECK,
  NAME_CHECK,
  TYPE_CHECK,
  RELEASE_EACH,
  SEAL_OF_LEDGER,
  SEAL_OF_TIERS,
  SEAL_OF_POLICY,
  SEAL_OF_ORDERS,
  SEAL_OF_BUDGETS,
  SEAL_OF_RELEASE,
  SEAL_OF_PUBLICATIONS,
  SEAL_OF_VALUES,
  SEAL_OF_PATH,
  SEAL_FIND,
  SEAL_LAST,
  SEAL_INSERT,
  SEAL_LIST,
  SEAL_LATEST,
  STATEMENTS
};

/* What the open transaction has changed, and so must seal (seal.c). */
struct touched {
  int64_t *subjects; /* ids of releases, SEAL_TERMS, SEAL_ORDERS */
  int count, room;
  int books;   /* dp_budget */
  int trusted; /* terms and budgets have been compared with their seals */
};

struct ledger {
  sqlite3 *host;       /* the connection that loaded the extension */
  sqlite3 *db;         /* the private connection, or null */
  struct error *error; /* the caller's */
  struct json json;
  char *path;              /* of the ledger file, or MEMORY_PATH */
  char *id;                /* dp_ledger.id of the open ledger */
  struct process process;  /* that opened db (L6) */
  int protects, adjacency; /* terms of the open ledger */
  int unchecked;           /* it has no policy */
  const char *read_only;   /* why the host may only read, once that was seen */
  int writes_refused;      /* in the open transaction, for that reason */
  int correction_failed;   /* of the marker's path; not tried again */
  struct touched touched;
  int rounding;                         /* the host's mode, while a transaction runs; or -1 */
  sqlite3_stmt *statements[STATEMENTS]; /* on db */

  /* Of a transaction: */
  intptr_t lock;       /* while it is held, or LOCK_FILE_NONE */
  char *lock_name;     /* of its file */
  int heeds_host;      /* whether the host's interrupt ends it */
  int is_patient;      /* waits longer, because a charge would be lost */
  sqlite3_stmt *probe; /* on the host's connection, or null */
  int64_t looked;      /* when the host was asked last; milliseconds */
  int64_t deadline;    /* when waiting ends; milliseconds */
  sqlite3 *file;       /* the connection to the file while db is a copy, or null ... */
  sqlite3_stmt *file_statements[STATEMENTS]; /* ... and its statements */
};

/* ---- connections (open.c) ---- */

int ledger_is_memory(const struct ledger *ledger);

/* ---- waiting and interrupts (interrupt.c) ---- */

/*
** Fails the ledger if the host is interrupted. Returns 0 after a failure. Cheap enough for a loop.
*/
int interrupt_check(struct ledger *ledger);

/* What the following transactions do when they have to wait. */
void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient);

/* The end of a transaction: leaves nothing on the host's connection. */
void interrupt_end(struct ledger *ledger);

/* Begins to wait for others. */
void wait_start(struct ledger *ledger);

/* Waits a moment; 0: for too long already, or interrupted. calls counts from 0. */
int wait_moment(struct ledger *ledger, int calls);

/* ---- the lock of the file (lock.c) ---- */

/* Waits for the lock. Held already, or nothing to lock: 1. */
int lock_take(struct ledger *ledger, int writes);
void lock_drop(struct ledger *ledger);

/* ---- a copy in memory (copy.c) ---- */

/* Goes back to the file, if there is a copy. */
void copy_end(struct ledger *ledger);

/* ---- errors and statements (statements.c) ---- */

/* Sets the error unless there is one; the format is sqlite3_mprintf's. Always returns 0. */
int ledger_fail(struct ledger *ledger, const char *format, ...);

/*
** A statement, reset and bound by `types`: s text (null is NULL), d double (NaN is NULL), i
** int64_t. Null after a failure.
*/
sqlite3_stmt *statement_bind(struct ledger *ledger, enum statement which, const char *types, ...);

/* Steps: 1 for a row, 0 at the end or on failure. The statement is reset unless there is a row. */
int statement_row(struct ledger *ledger, sqlite3_stmt *statement);

/* Binds and runs a statement that gives no rows. */
int statement_run(struct ledger *ledger, enum statement which, const char *types, ...);

/* Inserts a row: the struct of the statement's table. */
int statement_insert(struct ledger *ledger, enum statement which, const void *row);

/* The time of a statement, in SQL. */
#define STATEMENT_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/* The ledger holds what it cannot hold: names the table. Always returns 0. */
int ledger_fail_damaged(struct ledger *ledger, const char *table);

/* The one place where an SQLite error of the private connection becomes our sentence. */
int ledger_fail_sqlite(struct ledger *ledger);

void statements_finalize(struct ledger *ledger);

/* A column as a string of its own, or null for NULL; fails the ledger when out of memory. */
char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column);

/* A column until the next step: a text, '' for NULL; the bytes of a blob, none for NULL. */
const char *column_text(sqlite3_stmt *statement, int column);
struct bytes column_bytes(sqlite3_stmt *statement, int column);

/* ---- rows of tables (columns.c) ---- */

struct publication_row {
  PUBLICATION_COLUMNS(COLUMN_MEMBER)
};

struct value_row {
  VALUE_COLUMNS(COLUMN_MEMBER)
};

struct path_row {
  PATH_COLUMNS(COLUMN_MEMBER)
};

struct charge {
  CHARGE_COLUMNS(COLUMN_MEMBER)
};

struct seal {
  SEAL_COLUMNS(COLUMN_MEMBER)
};

struct budget_row {
  BUDGET_COLUMNS(COLUMN_MEMBER)
};

struct order_row {
  ORDER_COLUMNS(COLUMN_MEMBER)
};

extern const struct table_columns columns_release, columns_tier, columns_policy,
    columns_publication, columns_value, columns_path, columns_charge, columns_seal, columns_budget,
    columns_order, columns_rdp;

/* "SELECT", the columns of a row, and the rest; the insertion of a row. To be freed, or null. */
char *columns_select(const struct table_columns *columns, const char *rest);
char *columns_insert(const struct table_columns *columns);

/* What the host sees: "name TYPE, name TYPE" (to be freed, or null); the column at a place. */
char *columns_declaration(const struct table_columns *columns);
const struct column *columns_shown(const struct table_columns *columns, int place);

/* Binds the row that columns_insert() inserts: an error code of SQLite. */
int columns_bind(sqlite3_stmt *statement, const struct table_columns *columns, const void *row);

/* Reads the row that columns_select() selects; returns the number of the first column after it. */
int columns_read(struct ledger *ledger, sqlite3_stmt *statement,
                 const struct table_columns *columns, void *row);

/* Frees the texts of a row. */
void columns_clear(const struct table_columns *columns, void *row);

/* The hash of a row that follows one with hash `previous`, which may be where the hash goes. */
void columns_hash(const char *previous, const struct table_columns *columns, const void *row,
                  char hash[HASH_SIZE]);

/* The fields of a row, with slashes between them. To be freed, or null. */
char *columns_fingerprint(const struct table_columns *columns, const void *row);

/* ---- the format of the file (open.c, migrate.c) ---- */

/* The number of the format that the open file has. */
int ledger_format(struct ledger *ledger);

/* Brings an older file to LEDGER_FORMAT, in a transaction of its own. */
int ledger_migrate(struct ledger *ledger);

/* Makes the tables of sql/ledger.sql, in a transaction. */
int ledger_make_schema(struct ledger *ledger);

/* A discrepancy where the schema is not that of sql/ledger.sql; null: it is. */
char *ledger_verify_schema(struct ledger *ledger);

/* ---- seals (seal.c) ---- */

#define LEDGER_MOST_ROWS ((int64_t)1 << 52) /* no ledger has so many charges or releases */

/* What has a seal beside releases, which go by their ids. */
#define SEAL_TERMS  0    /* dp_ledger, dp_tier and dp_policy */
#define SEAL_ORDERS (-1) /* what dp_order allows */

/* In a transaction: what it changes, and must seal. Statements that write do so themselves. */
void seal_touch(struct ledger *ledger, int64_t subject);
int seal_touched(struct ledger *ledger); /* before the commit: appends the seals */
void seal_forget(struct ledger *ledger); /* the transaction has ended */

/* For migrations: fails where anything is not what its last seal says; seals everything. */
int seal_trust_all(struct ledger *ledger);
int seal_all(struct ledger *ledger);

/* Fails where dp_tier, dp_ledger or dp_budget are not what their last seals say. */
int seal_trust_books(struct ledger *ledger);

/* ---- the marker in the host's database (marker.c) ---- */

struct marker {
  char *id, *path; /* both null: no marker */
};

void marker_clear(struct marker *marker);

/* The marker of one attached database. 0 on failure, 1 otherwise (found or not). */
int marker_read(struct ledger *ledger, const char *schema, struct marker *marker);

/* Leaves the marker, or finds the same one left by another process. */
int marker_write(struct ledger *ledger, const char *id, const char *path);
int marker_drop(struct ledger *ledger);

/*
** Corrects the path of a marker where the database can be written now and no transaction is open.
** The path is a hint: the id decides, so a correction that fails or is rolled back does no harm.
*/
void marker_correct(struct ledger *ledger, const struct marker *marker, const char *path);

/* Whether the host's main database lives in memory. */
int host_in_memory(const struct ledger *ledger);

/*
** Notes in ledger->read_only, for good, when the host's connection cannot write its database. 0 on
** failure, also when that cannot be told.
*/
int host_check(struct ledger *ledger);

/* L3: refuses where an attached database belongs to another ledger than the open one. */
int marker_check_attached(struct ledger *ledger);

/* ---- files that a ledger must not be (files.c) ---- */

/*
** Whether a ledger at `path` would share a file with a database: itself, journals, WAL and index.
*/
int file_is_hosts(const char *path, const char *database);

/* ---- budgets (budget.c) ---- */

struct budget {
  struct total rate;
  double slack, delta;
  double curve; /* RDP beyond the rate, at the filter order */
  int64_t releases;
};

/* RDP beyond a rate: at the stored orders, and at the filter order of the tier in question. */
#define CURVE_SIZE (RENYI_ORDERS + 1)
#define AT_FILTER  RENYI_ORDERS
struct curve {
  int any; /* 0: it is zero everywhere, and values is not to be read */
  double values[CURVE_SIZE];
};

/* The curve of a cost, rounded up; NaN for the filter order leaves that entry 0. */
struct curve curve_of(const struct cost *cost, double filter_order);

/* What of a curve has not been paid yet, order by order. */
struct curve curve_missing(const struct curve *cost, const struct curve *paid);

/* Adds one curve to another, rounded up. */
void curve_add(struct curve *sum, const struct curve *term);

/* A curve as stored in a column, NULL for none. Fails the ledger where the blob is damaged. */
struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column);

/* The same of a blob that was read. */
struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored);

/* The bytes to store; none for no curve. */
#define CURVE_BYTES (CURVE_SIZE * 8)
struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]);

/* What a tier has paid, or has to pay, for one release. */
struct payment {
  struct total rate;
  double slack, delta;
  struct curve curve;
};

/* What a tier has paid for a release so far (charge.c). */
struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier);

/* ---- what a new tier must satisfy (tier_check.c) ---- */

/* The nearest of the tiers outside a tier, or null. */
const struct ledger_tier *tier_outside(const struct ledger_tier *tier,
                                       const struct ledger_tier *tiers, int count);

/*
** Makes the filter of a new tier. Refuses one that admits not even one release of the tier, and one
** that would run out before the tiers outside have spent their budgets.
*/
int tier_make(struct ledger *ledger, struct ledger_tier *tier, const struct ledger_tier *tiers,
              int count);

/* A tier that was just created pays for what its nearest outer neighbour has paid (charge.c). */
int charge_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer);

/*
** The running totals of a tier; what its charges add up to at the stored orders, zeros where there
** are no curves; and the same stored again, with everything that follows from them.
*/
int budget_read(struct ledger *ledger, const char *tier, struct budget *budget);
struct curve orders_read(struct ledger *ledger, const char *tier);
int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve);
int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget);

/* Refuses a payment: the rate that it needs, and what is left. Always returns 0. */
int budget_refuse_rate(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                       double left);

/* Stores releases_left of every tier. */
int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count);

/*
** How many more releases of weight 1 at tiers[at] all tiers that pay for them can bear; -1:
** failure.
*/
int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at);

/*
** What has been spent, as an epsilon at the tier's delta for noise, rounded up; with the total
** curve where there is one (null: none).
*/
double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve);

/* Whether a budget lies within the filter of its tier. */
int budget_within(const struct ledger_tier *tier, const struct budget *budget);

#endif
