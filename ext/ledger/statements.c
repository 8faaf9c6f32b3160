/*
** statements.c: see statements.h.
** Tests: tests/ledger/test_columns.py, tests/ledger/test_ledger.py
*/
#include "ledger/statements.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

SQLITE_EXTENSION_INIT3

static const struct statement rollback = {.sql = "ROLLBACK", .changes = CHANGES_TRANSACTION};

/* ---- subjects -------------------------------------------------------------------------------- */

void touched_add(struct ledger *ledger, int64_t subject) {
  struct touched *touched = &ledger->touched;
  /*
  ** The loop looks for the subject only in the last few entries. If it misses an earlier entry, the
  ** list contains the subject twice, which does no harm.
  */
  for (int i = touched->count; i > 0 && i > touched->count - 4; i--) {
    if (touched->subjects[i - 1] == subject) return;
  }
  if (touched->count == touched->room) {
    int room = 2 * touched->room + 4;
    int64_t *grown = sqlite3_realloc64(touched->subjects, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) {
      ledger_fail(ledger, "out of memory");
      return;
    }
    touched->subjects = grown;
    touched->room = room;
  }
  touched->subjects[touched->count++] = subject;
}

void touched_forget(struct ledger *ledger) {
  sqlite3_free(ledger->touched.subjects);
  ledger->touched = (struct touched){0};
}

int touched_has(const struct ledger *ledger, int64_t subject) {
  for (int i = 0; i < ledger->touched.count; i++) {
    if (ledger->touched.subjects[i] == subject) return 1;
  }
  return 0;
}

/* ---- the prepared statements ----------------------------------------------------------------- */

/* Returns the slot of a statement, which is empty if the statement is not prepared. */
static struct prepared *slot_of(struct ledger *ledger, const struct statement *statement) {
  size_t at = (uintptr_t)statement / sizeof *statement % STATEMENT_SLOTS;
  for (int i = 0; i < STATEMENT_SLOTS; i++, at = (at + 1) % STATEMENT_SLOTS) {
    struct prepared *slot = &ledger->statements[at];
    if (!slot->statement || slot->statement == statement) return slot;
  }
  assert(0 && "there are fewer statements than slots");
  return 0;
}

static int prepare(struct ledger *ledger, const struct statement *statement,
                   struct prepared *slot) {
  if (sqlite3_prepare_v3(ledger->db, statement->sql, -1, SQLITE_PREPARE_PERSISTENT, &slot->prepared,
                         0) != SQLITE_OK)
    return ledger_fail_sqlite(ledger);
  slot->statement = statement;
  assert(statement->changes || sqlite3_stmt_readonly(slot->prepared));
  return 1;
}

void statements_finalize(struct ledger *ledger) {
  for (int i = 0; i < STATEMENT_SLOTS; i++) {
    sqlite3_finalize(ledger->statements[i].prepared);
    ledger->statements[i] = (struct prepared){0, 0};
  }
}

/* ---- running --------------------------------------------------------------------------------- */

/*
** Prepares or resets a statement and clears its bindings. Sets an error and returns null if the
** statement must not run now.
*/
static sqlite3_stmt *ready(struct ledger *ledger, const struct statement *statement) {
  if (error_is_set(ledger->error)) return 0;
  struct prepared *slot = slot_of(ledger, statement);
  if (!slot->statement && !prepare(ledger, statement, slot)) return 0;
  int writes = statement->changes > CHANGES_TRANSACTION;
  if (writes && ledger->writes_refused) /* L7 */
    ledger_fail(ledger,
                "this connection cannot write its database (%s), so it reads what has been "
                "published and charges, creates or discards nothing (use a connection that "
                "can write)",
                ledger->read_only);
  /* SQLite may have ended the transaction after an error. A write would be permanent at once. */
  if (writes && sqlite3_get_autocommit(ledger->db))
    ledger_fail(ledger, "the transaction on the privacy ledger was lost (try again)");
  if (error_is_set(ledger->error)) return 0;
  /* sqlite3_reset() returns the error of the last step, which the code has handled already. */
  sqlite3_reset(slot->prepared);
  if (sqlite3_clear_bindings(slot->prepared) == SQLITE_OK) return slot->prepared;
  ledger_fail_sqlite(ledger);
  return 0;
}

/*
** If the bindings succeeded, records the subject that the statement is about to change. Returns
** `prepared`, or null on failure.
*/
static sqlite3_stmt *bound(struct ledger *ledger, const struct statement *statement,
                           sqlite3_stmt *prepared, int rc, int64_t first) {
  if (rc != SQLITE_OK) ledger_fail_sqlite(ledger);
  if (statement->changes == CHANGES_RELEASE) touched_add(ledger, first);
  if (statement->changes == CHANGES_TERMS) {
    touched_add(ledger, SEAL_TERMS);
    touched_add(ledger, SEAL_ORDERS);
  }
  if (statement->changes == CHANGES_BUDGET) ledger->touched.books = 1;
  return error_is_set(ledger->error) ? 0 : prepared;
}

static sqlite3_stmt *bind(struct ledger *ledger, const struct statement *statement,
                          const char *types, va_list arguments) {
  sqlite3_stmt *prepared = ready(ledger, statement);
  int64_t first = 0;
  int rc = SQLITE_OK;
  for (int i = 1; prepared && types[i - 1] && rc == SQLITE_OK; i++) {
    switch (types[i - 1]) {
    case 's':
      rc = sqlite3_bind_text(prepared, i, va_arg(arguments, const char *), -1, SQLITE_TRANSIENT);
      break;
    case 'd': rc = sqlite3_bind_double(prepared, i, va_arg(arguments, double)); break;
    case 'b': {
      struct bytes bytes = va_arg(arguments, struct bytes);
      rc = sqlite3_bind_blob(prepared, i, bytes.at, bytes.size, SQLITE_TRANSIENT);
      break;
    }
    default: {
      int64_t number = va_arg(arguments, int64_t);
      if (i == 1) first = number;
      if (number || types[i - 1] == 'i') rc = sqlite3_bind_int64(prepared, i, number);
      break;
    }
    }
  }
  return prepared ? bound(ledger, statement, prepared, rc, first) : 0;
}

sqlite3_stmt *statement_bind(struct ledger *ledger, const struct statement *statement,
                             const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *prepared = bind(ledger, statement, types, arguments);
  va_end(arguments);
  return prepared;
}

int statement_row(struct ledger *ledger, sqlite3_stmt *prepared) {
  if (!prepared || !ledger_goes_on(ledger)) return 0;
  int rc = sqlite3_step(prepared);
  if (rc == SQLITE_ROW) return 1;
  if (rc != SQLITE_DONE) ledger_fail_sqlite(ledger);
  sqlite3_reset(prepared); /* an error is already recorded */
  return 0;
}

int64_t statement_integer(struct ledger *ledger, sqlite3_stmt *prepared) {
  return statement_row(ledger, prepared) ? sqlite3_column_int64(prepared, 0) : 0;
}

char *statement_text(struct ledger *ledger, sqlite3_stmt *prepared) {
  char *text = statement_row(ledger, prepared) ? column_copy(ledger, prepared, 0) : 0;
  sqlite3_reset(prepared);
  return text;
}

int statement_discrepancy(struct ledger *ledger, const struct statement *statement) {
  sqlite3_stmt *row = statement_bind(ledger, statement, "");
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  return ledger_discrepancy(ledger, "%s: '%s' %s", column_text(ledger, row, 0),
                            column_text(ledger, row, 1), column_text(ledger, row, 2));
}

int statement_run(struct ledger *ledger, const struct statement *statement, const char *types,
                  ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *prepared = bind(ledger, statement, types, arguments);
  va_end(arguments);
  while (statement_row(ledger, prepared)) {
  }
  return !error_is_set(ledger->error);
}

/* ---- one column ------------------------------------------------------------------------------ */

const char *column_borrow(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return 0;
  const char *text = (const char *)sqlite3_column_text(statement, column);
  if (!text) ledger_fail(ledger, "out of memory");
  return text;
}

char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  const char *text = column_borrow(ledger, statement, column);
  char *copy = text ? sqlite3_mprintf("%s", text) : 0;
  if (text && !copy) ledger_fail(ledger, "out of memory");
  return copy;
}

const char *column_text(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  const char *text = column_borrow(ledger, statement, column);
  return text ? text : "";
}

struct bytes column_bytes(sqlite3_stmt *statement, int column) {
  const void *bytes = sqlite3_column_blob(statement, column);
  if (!bytes && sqlite3_column_type(statement, column) != SQLITE_NULL) bytes = ""; /* 0 bytes */
  return (struct bytes){bytes, sqlite3_column_bytes(statement, column)};
}

double column_number(sqlite3_stmt *row, int column) {
  int is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, column);
}

/* ---- the end of a transaction ---------------------------------------------------------------- */

int statements_prepare(struct ledger *ledger) {
  return statement_bind(ledger, &rollback, "") != 0;
}

void statements_end(struct ledger *ledger) {
  if (!ledger->db || ledger_is_inherited(ledger)) return;
  for (int i = 0; i < STATEMENT_SLOTS; i++) sqlite3_reset(ledger->statements[i].prepared);
  if (sqlite3_get_autocommit(ledger->db)) return;
  sqlite3_stmt *prepared = slot_of(ledger, &rollback)->prepared;
  /* An error of the rollback does not matter, because the first error is already set. */
  sqlite3_step(prepared);
  sqlite3_reset(prepared);
}
