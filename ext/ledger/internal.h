/* internal.h: the struct ledger and the functions that the files of ledger/ share. */
#ifndef DIFFUSE_LEDGER_INTERNAL_H
#define DIFFUSE_LEDGER_INTERNAL_H

#include "ledger/columns.h"
#include "ledger/hash.h"
#include "ledger/ledger.h"
#include "os/process.h"
#include "math/renyi.h"
#include "math/total.h"

#define MEMORY_PATH ":memory:"

#define LEDGER_FORMAT 1 /* the format of sql/ledger.sql */

/*
** Every statement on the ledger. Each statement is prepared once per connection. statements.c
** contains the texts.
*/
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
  PERIOD_OVER,
  PERIOD_ENTER,
  PERIOD_ORDERS,
  PERIOD_COUNT,
  PERIOD_CHECK,
  PERIOD_ENTERED,
  ORDER_INSERT,
  CHARGE_LAST,
  CHARGE_SUBJECT,
  CHARGE_COUNTED,
  CHARGE_INSERT,
  CHARGE_PAID,
  CHARGE_SINCE,
  CHARGE_DAYS,
  CHARGE_PAID_UNTIL,
  GRANT_READ,
  GRANT_INSERT,
  GRANT_TAKEN,
  GRANT_CHECK,
  RESERVE_LIST,
  RESERVE_KNOWN,
  RESERVE_READ,
  RESERVE_MISSING,
  RESERVE_INSERT,
  RESERVE_WRITE,
  RESERVE_CHARGES,
  TIER_RESERVED,
  SEAL_OF_GRANTS,
  SEAL_OF_RESERVES,
  CHARGE_PAID_EACH,
  CHARGE_FIRST,
  MODEL_PAID,
  CHARGE_LIST,
  RELEASE_FIND,
  RELEASE_GET,
  RELEASE_INSERT,
  RELEASE_NAME,
  RELEASE_STATE,
  RELEASE_SLACK,
  PATH_READ,
  PATH_ANY,
  POINT_INSERT,
  COORDINATE_INSERT,
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
  PUBLICATION_OF,
  BUDGET_CHECK,
  ORDER_CHECK,
  RELEASE_CHECK,
  ORPHAN_CHECK,
  PUBLICATION_CHECK,
  CURVE_CHECK,
  STATE_CHECK,
  NAME_CHECK,
  TYPE_CHECK,
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

/* What the open transaction has changed. The commit seals these changes (seal.c). */
struct touched {
  int64_t *subjects; /* ids of releases, SEAL_TERMS, SEAL_ORDERS */
  int count, room;
  int books;   /* 1: the transaction has changed dp_budget */
  int trusted; /* 1: the transaction has compared terms and budgets with their seals */
};

struct ledger {
  sqlite3 *host;       /* the connection that loaded the extension */
  sqlite3 *db;         /* the private connection, or null */
  struct error *error; /* receives all errors; owned by the caller */
  struct json json;
  kind_is_positive *is_positive;
  char *path;              /* path of the ledger file, or MEMORY_PATH */
  char *id;                /* dp_ledger.id of the open ledger */
  struct process process;  /* the process that opened db (L6) */
  int protects, adjacency; /* terms of the open ledger */
  int unchecked;           /* 1: the open ledger has no policy */
  const char *read_only;   /* the reason why the host may only read, or null */
  int writes_refused;      /* 1: the open transaction must not write, because of read_only */
  int correction_failed;   /* 1: the marker's path could not be corrected */
  char *audience;          /* the tier whose members use the host connection; null: the owner */
  /* The grant that pays for the charges of this connection; null: the owner pays. */
  char *grant;
  struct touched touched;
  int rounding; /* the host's rounding mode while a transaction runs, or -1 */
  int unsynced; /* 1: db is set up for a trial (transaction.c); -1: not known */
  sqlite3_stmt *statements[STATEMENTS]; /* statements on db */

  /* Members that belong to a transaction: */
  intptr_t lock;       /* the lock that is held, or LOCK_FILE_NONE */
  char *lock_name;     /* the file of the lock */
  int heeds_host;      /* 1: if the host is interrupted, the transaction ends */
  int is_patient;      /* 1: wait longer for locks, because a failure would waste a charge */
  sqlite3_stmt *probe; /* the prepared probe (interrupt.c), or null */
  int64_t looked;      /* time of the last run of the probe; milliseconds */
  int64_t deadline;    /* time at which waiting ends; milliseconds */
  sqlite3 *file;       /* the connection to the file while db is a copy, or null */
  sqlite3_stmt *file_statements[STATEMENTS]; /* the statements on `file` */
};

/* ---- the connection (connection.c) ---- */

int ledger_is_memory(const struct ledger *ledger);

/*
** Returns whether this process inherited the connection by fork(). An inherited connection belongs
** to the parent process (L6). If the child closed this connection or rolled back, the child could
** undo an open transaction of the parent on the same file.
*/
int connection_is_inherited(const struct ledger *ledger);

/*
** Opens the file and takes its lock, which every read of a ledger needs. If the file belongs to
** another application, the function succeeds without the lock.
*/
int connection_open(struct ledger *ledger);

/* Does what connection_open() does, and makes the connection ready for transactions. */
int connection_start(struct ledger *ledger);

/*
** Forgets an inherited connection without closing it. Closes any other connection while holding the
** lock. Closing a file drops the locks that other copies of SQLite in this process have on the
** file, so no other transaction may be running.
*/
void connection_close(struct ledger *ledger);

/*
** Checks that the connection was not inherited by fork() (L6), and that the file was not deleted or
** replaced while the connection was open.
*/
int connection_check(struct ledger *ledger);

/* Returns whether the header of the open file marks it as a ledger. */
int connection_is_ledger(struct ledger *ledger);

/*
** Sets the journal mode TRUNCATE, or fails. If somebody has turned the file into a WAL database,
** setting the mode writes to the file, so the function then fails if the host may only read (L7).
** Any other change of the mode does not write to the file.
*/
int connection_set_journal(struct ledger *ledger);

/* Reads the terms of an open connection. */
int connection_read_terms(struct ledger *ledger);

/*
** Checks that nobody has overwritten the open file with another ledger or set another journal mode.
** While a ledger is being created, there is nothing to compare, and the function succeeds.
*/
int connection_check_terms(struct ledger *ledger);

/*
** protects_text() returns the name of LEDGER_UNITS or LEDGER_ROWS. adjacency_text() returns the
** name of LEDGER_ADD_REMOVE or LEDGER_REPLACE.
*/
const char *protects_text(int protects);
const char *adjacency_text(int adjacency);

/* ---- where the ledger is (open.c) ---- */

/*
** Returns the path of `name` in the database's directory. If `name` is absolute, or if the database
** has no directory, returns a copy of `name`. The caller calls sqlite3_free().
*/
char *ledger_resolve(const struct ledger *ledger, const char *name);

/*
** Returns the default path of a ledger, as a marker stores it. The path is relative to the
** database, so that both files can move together. The caller calls sqlite3_free().
*/
char *ledger_default_name(const struct ledger *ledger);

/*
** Opens the ledger at `path`, unless it is open already. Returns 0 without an error if there is no
** ledger at `path`. The function takes ownership of the string. An in-memory ledger cannot be
** opened again, so for MEMORY_PATH the function succeeds only if this ledger is open. The function
** refuses the files of the host's database, because closing such a file would drop the host's own
** locks.
*/
int ledger_use_path(struct ledger *ledger, char *path);

/* ---- transactions (transaction.c) ---- */

/* Rolls back the transaction, if one is open. The function does not release the lock. */
void transaction_end(struct ledger *ledger);

/* ---- waiting and interrupts (interrupt.c) ---- */

/*
** Sets the error if the host is interrupted. Returns 0 if an error is set. The function is fast
** enough to be called in a loop.
*/
int interrupt_check(struct ledger *ledger);

/* Sets the members heeds_host and is_patient, which decide how the following transactions wait. */
void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient);

/*
** Ends the checks for interrupts at the end of a transaction. Finalizes the probe, so that no
** statement is left on the host's connection.
*/
void interrupt_end(struct ledger *ledger);

/* Starts the time limit for waiting. */
void wait_start(struct ledger *ledger);

/*
** Waits for a few milliseconds. Returns 0 if the time limit is over or the host is interrupted.
** `calls` is the number of earlier calls for the same wait.
*/
int wait_moment(struct ledger *ledger, int calls);

/* ---- the lock of the file (lock.c) ---- */

/*
** Waits for the lock. Returns 1 if this handle now holds the lock, already held it, or needs no
** lock. `writes` says whether the transaction will write.
*/
int lock_take(struct ledger *ledger, int writes);
void lock_drop(struct ledger *ledger);

/* ---- a copy in memory (copy.c) ---- */

/* Drops the copy, if there is one, and goes back to the file. */
void copy_end(struct ledger *ledger);

/* ---- errors and statements (statements.c) ---- */

/* Sets the error unless one is set already. The format is that of sqlite3_mprintf. Returns 0. */
int ledger_fail(struct ledger *ledger, const char *format, ...);

/*
** Resets a statement and binds its parameters. Each letter of `types` is one parameter: s for a
** text (null: NULL), d for a double (NaN: NULL), i for an int64_t. Returns null on failure.
*/
sqlite3_stmt *statement_bind(struct ledger *ledger, enum statement which, const char *types, ...);

/*
** Steps a statement. Returns 1 if there is a row. Otherwise resets the statement and returns 0;
** this may be the end or a failure.
*/
int statement_row(struct ledger *ledger, sqlite3_stmt *statement);

/* Binds and runs a statement that gives no rows. */
int statement_run(struct ledger *ledger, enum statement which, const char *types, ...);

/* Inserts a row. `row` points to the struct of the statement's table. */
int statement_insert(struct ledger *ledger, enum statement which, const void *row);

/* An SQL expression for the current time. Its value does not change during a statement. */
#define STATEMENT_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/* Reports that the ledger is damaged, with the name of the table. Returns 0. */
int ledger_fail_damaged(struct ledger *ledger, const char *table);

/* Sets the error to the last SQLite error of the private connection. Returns 0. */
int ledger_fail_sqlite(struct ledger *ledger);

void statements_finalize(struct ledger *ledger);

/*
** Returns a copy of a column's text, or null for NULL. The caller calls sqlite3_free(). Sets the
** error if memory runs out.
*/
char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column);

/*
** column_text() returns a column's text, or "" for NULL. column_bytes() returns the bytes of a
** blob, or a null pointer for NULL. Both results are valid until the next step.
*/
const char *column_text(sqlite3_stmt *statement, int column);
struct bytes column_bytes(sqlite3_stmt *statement, int column);

/* ---- rows of tables (table_rows.c) ---- */

struct publication_row {
  PUBLICATION_COLUMNS(COLUMN_MEMBER)
};

struct value_row {
  VALUE_COLUMNS(COLUMN_MEMBER)
};

struct point_row {
  POINT_COLUMNS(COLUMN_MEMBER)
};

struct coordinate_row {
  COORDINATE_COLUMNS(COLUMN_MEMBER)
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

struct reserve_row {
  RESERVE_COLUMNS(COLUMN_MEMBER)
};

struct order_row {
  ORDER_COLUMNS(COLUMN_MEMBER)
};

extern const struct table_columns columns_release, columns_tier, columns_policy,
    columns_publication, columns_value, columns_point, columns_coordinate, columns_charge,
    columns_seal, columns_budget, columns_order, columns_grant, columns_reserve, columns_rdp;

/*
** columns_select() returns the text of a SELECT that reads the columns of a row and ends with
** `rest`. columns_insert() returns the text of an INSERT of a row. The caller calls sqlite3_free().
** Both return null if memory runs out.
*/
char *columns_select(const struct table_columns *columns, const char *rest);
char *columns_insert(const struct table_columns *columns);

/*
** columns_declaration() returns the columns that the host sees, as in "name TYPE, name TYPE". The
** caller calls sqlite3_free(). The function returns null if memory runs out. columns_shown()
** returns the column that the host sees at a position (from 1 on), or null.
*/
char *columns_declaration(const struct table_columns *columns);
const struct column *columns_shown(const struct table_columns *columns, int place);

/* Binds the row that columns_insert() inserts. Returns an SQLite result code. */
int columns_bind(sqlite3_stmt *statement, const struct table_columns *columns, const void *row);

/*
** Reads the row that columns_select() selects. Returns the index of the first column of `statement`
** after those of the row.
*/
int columns_read(struct ledger *ledger, sqlite3_stmt *statement,
                 const struct table_columns *columns, void *row);

/* Frees the texts of a row. */
void columns_clear(const struct table_columns *columns, void *row);

/*
** Computes the hash of a row from the row and the hash of the previous row. `previous` and `hash`
** may be the same buffer.
*/
void columns_hash(const char *previous, const struct table_columns *columns, const void *row,
                  char hash[HASH_SIZE]);

/*
** Returns the fields of a row's fingerprint, joined by slashes. The caller calls sqlite3_free().
** Returns null if memory runs out.
*/
char *columns_fingerprint(const struct table_columns *columns, const void *row);

/* ---- the column display of dp_value (display.c) ---- */

/*
** Registers the SQL function display(kind, lo, grid, key, stddev, value, low, high) on a private
** connection. stddev is NULL for the ends of bounds and for a symbol, which is in `key`.
*/
int display_register(struct ledger *ledger, sqlite3 *db);

/* ---- the format of the file (connection.c, schema.c) ---- */

/* Returns the format number of the open file. */
int ledger_format(struct ledger *ledger);

/* Fails if the format number of the open file is not LEDGER_FORMAT. */
int ledger_check_format(struct ledger *ledger);

/* Creates the tables of sql/ledger.sql. Call this function inside a transaction. */
int ledger_make_schema(struct ledger *ledger);

/*
** Compares the schema of the open file with sql/ledger.sql. Returns null if they are equal.
** Otherwise returns a text that names the first difference. The caller calls sqlite3_free().
*/
char *ledger_verify_schema(struct ledger *ledger);

/* ---- seals (seal.c) ---- */

#define LEDGER_MOST_ROWS ((int64_t)1 << 52) /* the most charges, seals or releases */

/*
** Each seal covers one subject (seal.c). The subject of a release is its id, which is above 0.
** These are the other subjects.
*/
#define SEAL_TERMS  0    /* dp_ledger, dp_tier and dp_policy */
#define SEAL_ORDERS (-1) /* dp_order.allowed */

/*
** Records that the open transaction changes a subject, so that the commit seals this subject.
** note_write() in statements.c calls seal_touch() for the statements that change a subject.
*/
void seal_touch(struct ledger *ledger, int64_t subject);
int seal_touched(struct ledger *ledger); /* appends the seals; called before the commit */
void seal_forget(struct ledger *ledger); /* forgets the records; called after the transaction */

/*
** Fails if dp_ledger, dp_tier, dp_policy, dp_grant, dp_budget or dp_reserve differs from its last
** seal.
*/
int seal_trust_books(struct ledger *ledger);

/* ---- the marker in the host's database (marker.c) ---- */

struct marker {
  char *id, *path; /* both are null if there is no marker */
};

void marker_clear(struct marker *marker);

/*
** Reads the marker of one attached database. Returns 1 whether or not there is a marker, and 0
** after a failure.
*/
int marker_read(struct ledger *ledger, const char *schema, struct marker *marker);

/*
** marker_write() writes the marker. It also succeeds if another process has just written the same
** marker. marker_drop() drops the marker's table.
*/
int marker_write(struct ledger *ledger, const char *id, const char *path);
int marker_drop(struct ledger *ledger);

/*
** Stores a new path in the marker, if the database can be written now and no transaction is open.
** The path is only a hint, because the id identifies the ledger. It therefore does no harm if the
** correction fails or is rolled back.
*/
void marker_correct(struct ledger *ledger, const struct marker *marker, const char *path);

/* Returns whether the host's main database lives in memory. */
int host_in_memory(const struct ledger *ledger);

/*
** Sets ledger->read_only if the host's connection cannot write its database. The member stays set
** as long as the handle exists. Returns 0 after a failure, for example if the function cannot find
** out whether the host can write.
*/
int host_check(struct ledger *ledger);

/* Fails if an attached database belongs to a ledger that is not the open ledger (L3). */
int marker_check_attached(struct ledger *ledger);

/* ---- files that cannot be a ledger (files.c) ---- */

/*
** Returns whether `path` is one of a database's files: the database itself, a journal, its WAL or
** its WAL index. Also returns 1 if the database is such a file of a database at `path`.
*/
int file_is_hosts(const char *path, const char *database);

/* ---- budgets and curves (budget.c, curve.c) ---- */

/* What a tier has spent, or what a grant has spent at a tier. */
struct budget {
  struct total rate;
  double slack, delta;
  double curve; /* the total of the curves, at the filter order */
  int64_t releases;
};

/*
** The RDP that a cost has in addition to the RDP of its rate (math/cost.h), at the stored orders
** (math/renyi.h) and at the filter order of one tier.
*/
#define CURVE_SIZE (RENYI_ORDERS + 1)
#define AT_FILTER  RENYI_ORDERS
struct curve {
  int any; /* 0: the curve is zero at every order, and `values` is not set */
  double values[CURVE_SIZE];
};

/*
** Returns the curve of a cost, rounded up. If the filter order is NaN, the entry at the filter
** order is 0.
*/
struct curve curve_of(const struct cost *cost, double filter_order);

/* Returns, for each order, how far the curve `cost` exceeds the curve `paid`, or 0. */
struct curve curve_missing(const struct curve *cost, const struct curve *paid);

/* Adds one curve to another, rounded up. */
void curve_add(struct curve *sum, const struct curve *term);

/* Reads a curve from a column. NULL stands for no curve. Sets the error if the blob is damaged. */
struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column);

/* Reads a curve from the bytes of a blob. */
struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored);

/* Returns the bytes that the ledger stores for a curve, or a null pointer if there is no curve. */
#define CURVE_BYTES (CURVE_SIZE * 8)
struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]);

/* An amount that a tier has paid or must pay for one release. */
struct payment {
  struct total rate;
  double slack, delta;
  struct curve curve;
};

/* Returns the amount that a tier has paid for a release so far (charge.c). */
struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier);

/* ---- periods (period.c) ---- */

/*
** Returns the largest number of periods of an outer tier that can overlap one period of an inner
** tier. Null means a period that never ends. Returns 0 if there is no largest number, because the
** inner period never ends and the outer periods do.
*/
int period_overlaps(const char *inner, const char *outer);

/*
** Starts a period of a tier. The period begins on the day `start`. The totals of the tier become 0.
*/
int period_enter(struct ledger *ledger, const char *tier, const char *start);

/*
** Starts the current period of every tier whose rate is at least `rate` and whose period is over.
** Sets *entered to 1 if there was such a tier. The caller must then update releases_left.
*/
int periods_enter(struct ledger *ledger, double rate, int *entered);

/*
** If a tier has a period, appends three members to a JSON object. `period` is the kind of period.
** `per_period` is the budget of one period. `all_periods` is the guarantee for all periods until
** now: the epsilon and delta if the whole budget was spent in each of these periods.
*/
void period_append(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_str *json);

/*
** Writes the name of the tier's current period, such as 'January 2026', to `name`. Writes '' if the
** tier has no periods.
*/
void period_name(struct ledger *ledger, const struct ledger_tier *tier, char *name, size_t size);

/* ---- checks of a new tier (tier_check.c) ---- */

/* Returns the nearest of the tiers outside a tier, or null. */
const struct ledger_tier *tier_outside(const struct ledger_tier *tier,
                                       const struct ledger_tier *tiers, int count);

/*
** Computes the limits of a new tier. The function refuses a tier that could not afford one release
** at its own rate. It also refuses a tier whose budget could run out before the tiers outside it
** have spent their budgets.
*/
int tier_make(struct ledger *ledger, struct ledger_tier *tier, const struct ledger_tier *tiers,
              int count);

/* ---- payments (charge.c, budget.c) ---- */

/*
** Charges a new tier for everything that the nearest tier outside it has paid (charge.c).
*/
int charge_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer);

/*
** budget_read() and budget_write() read and write the running totals of a tier. orders_read() and
** orders_write() read and write the sum of the curves of its charges at the stored orders.
** budget_write() also stores the columns that follow from the totals.
*/
int budget_read(struct ledger *ledger, const char *tier, struct budget *budget);
struct curve orders_read(struct ledger *ledger, const char *tier);
int orders_write(struct ledger *ledger, const char *tier, const struct curve *curve);
int budget_write(struct ledger *ledger, const struct ledger_tier *tier,
                 const struct budget *budget);

/*
** Sets the error for a payment that does not fit. The error gives the rate that the payment needs
** and the rate that is left. Returns 0.
*/
int budget_refuse_rate(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                       double left);

/* Updates releases_left of every tier. */
int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count);

/*
** Returns how many further releases of weight 1 at tiers[at] every paying tier, tiers[0] to
** tiers[at], can afford. Returns -1 on failure.
*/
int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at);

/*
** Returns the epsilon that a tier has spent so far, rounded up. This epsilon belongs to the tier's
** delta without the parts that are set aside for key selection and lattice slack. `curve` is the
** sum of the tier's curves (null: no curves).
*/
double budget_epsilon(const struct ledger_tier *tier, const struct budget *budget,
                      const struct curve *curve);

/*
** Returns the number of times that a tier can still pay an amount in addition to the spent budget.
** Returns infinity if the amount is 0.
*/
double budget_repeats(const struct ledger_tier *tier, const struct budget *spent,
                      const struct budget *amount);

/* Returns whether what was spent is within the limits of the tier. */
int budget_within(const struct ledger_tier *tier, const struct budget *budget);

/* Adds a payment to what was spent. `first` is 1 if this is the first payment for its release. */
struct budget budget_after(const struct budget *budget, const struct payment *payment, int first);

/* ---- what grants hold (grant.c) ---- */

/* Amounts of a tier's budget, such as the unspent amounts of all grants (grant.c). */
struct held {
  double total, delta, slack;
};

/*
** Sets *room to a copy of the tier. The limits of this copy are those that remain for the owner
** beside the grants.
*/
int reserves_room(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room);

/*
** Sets *room to a copy of the tier. The limits of this copy are the amounts that the connection's
** grant has reserved at the tier. Sets *spent to the spent part of these amounts. Returns 0 if the
** grant has no amounts at this tier.
*/
int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent);

/*
** Makes a payment at a tier from the amounts that the connection's grant has reserved there. Sets
** an error and returns 0 if the payment does not fit.
*/
int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment);

/*
** Reserves, at a new tier, the amounts that the grants hold at the nearest tier outside it. Sets an
** error and returns 0 if the new tier has too little budget.
*/
int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer);

/* Returns whether a name is '<grant>/<name>' and this grant exists. */
int grant_owns_name(struct ledger *ledger, const char *name);

/* Returns the first discrepancy between grants, charges and budgets, or null. */
char *grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count);

#endif
