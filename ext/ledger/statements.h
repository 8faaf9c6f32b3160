/*
** statements.h: runs the statements of the ledger. The text of a statement stands in the file that
** runs it, as a `static const struct statement`. Each statement is prepared once per connection.
**
** If the host may only read (L7), statements.c refuses every statement that changes rows.
*/
#ifndef DIFFUSE_LEDGER_STATEMENTS_H
#define DIFFUSE_LEDGER_STATEMENTS_H

#include "base/hash.h"
#include "ledger/handle.h"

/*
** What a statement changes, and what the commit must therefore seal:
**   NOTHING      it reads
**   TRANSACTION  it begins or ends a transaction
**   RELEASE      the release whose id is the first parameter
**   TERMS        the terms, tiers, policy, grants and orders
**   BUDGET       the budgets
**   NEW_RELEASE  a release whose id is not known yet
**   POINT        a point of a release that the same transaction has touched already
**   CHAIN        rows that need no seal, because they are in a hash chain or because dp_verify()
**                recomputes them to the last bit
*/
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

struct statement {
  const char *sql;
  enum change changes;
};

/* An SQL expression for the current time. Its value does not change during a statement. */
#define STATEMENT_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/*
** Resets a statement and binds its parameters. Each letter of `types` is one parameter: s for a
** text (null: NULL), d for a double (NaN: NULL), i for an int64_t, n for an int64_t (0: NULL), and
** b for a struct bytes. Returns null on failure.
*/
sqlite3_stmt *statement_bind(struct ledger *ledger, const struct statement *statement,
                             const char *types, ...);

/*
** Steps a statement. Returns 1 if there is a row. Otherwise resets the statement and returns 0;
** this may be the end or a failure. A statement that has given a row keeps it until it is bound
** again or the transaction ends. Outside a transaction, the caller resets it.
*/
int statement_row(struct ledger *ledger, sqlite3_stmt *prepared);

/* Binds and runs a statement that gives no rows. */
int statement_run(struct ledger *ledger, const struct statement *statement, const char *types, ...);

/*
** Step a statement once. The results are the integer and a copy of the text in the
** first column; without a row or after a failure, they are 0. The caller frees the text with
** sqlite3_free().
*/
int64_t statement_integer(struct ledger *ledger, sqlite3_stmt *prepared);
char *statement_text(struct ledger *ledger, sqlite3_stmt *prepared);

/*
** Runs a statement that lists discrepancies: a table, the name of a row, and what is wrong with it.
** Sets the first one (ledger_discrepancy()) and returns 0, or returns 1 if there is none.
*/
int statement_discrepancy(struct ledger *ledger, const struct statement *statement);

/* Prepares ROLLBACK now, because there may be no memory left when the ledger needs it. */
int statements_prepare(struct ledger *ledger);

/*
** Resets all statements, and rolls back the transaction if one is open. The function does not
** release the lock.
*/
void statements_end(struct ledger *ledger);

void statements_finalize(struct ledger *ledger);

/* ---- one column of a result ------------------------------------------------------------------ */

/*
** Return a column's text, or null for NULL, and set the error if memory runs out (column_text()
** returns "" in both cases; a discrepancy that this feigns is not reported). column_borrow()
** returns SQLite's own text, which is valid until the next step, and column_copy() returns a copy,
** which the caller frees with sqlite3_free().
*/
const char *column_borrow(struct ledger *ledger, sqlite3_stmt *statement, int column);
char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column);

/*
** column_text() returns a column's text, or "" for NULL. column_bytes() returns the bytes of a
** blob, or a null pointer for NULL. Both results are valid until the next step.
*/
const char *column_text(struct ledger *ledger, sqlite3_stmt *statement, int column);
struct bytes column_bytes(sqlite3_stmt *statement, int column);

/* Returns the number in a column, or NaN for NULL. */
double column_number(sqlite3_stmt *statement, int column);

/* ---- the subjects that the open transaction changes ------------------------------------------ */

/* The subject of a release is its id, which is above 0. These are the other subjects. */
#define SEAL_TERMS  0    /* dp_ledger, dp_tier, dp_policy, dp_grant, dp_page */
#define SEAL_ORDERS (-1) /* dp_order.allowed */

/* Records that the open transaction changes a subject, so that the commit seals this subject. */
void touched_add(struct ledger *ledger, int64_t subject);

/* Returns whether the open transaction changes a subject. */
int touched_has(const struct ledger *ledger, int64_t subject);

/* Forgets the records after the transaction. */
void touched_forget(struct ledger *ledger);

#endif
