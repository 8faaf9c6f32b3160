/* handle.c: the handle, its errors, how it waits and notices interrupts of the host, and how it
** runs statements. It calls no other file of ledger/.
** Tests: tests/ledger/test_ledger.py, tests/ledger/test_concurrency.py,
** tests/ledger/test_columns.py */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "ledger/internal.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

/* ---- errors ---------------------------------------------------------------------------------- */

int ledger_fail(struct ledger *ledger, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error_set_list(ledger->error, format, arguments);
  va_end(arguments);
  return 0;
}

int ledger_fail_damaged(struct ledger *ledger, const char *table) {
  /* Advice: The file was edited, or the disk failed. [dp_verify](#what-dp_verify-says) tells
     where. */
  return ledger_fail(ledger, "the privacy ledger '%s' is damaged: %s (restore it from a backup)",
                     ledger->path, table);
}

int ledger_fail_sqlite(struct ledger *ledger) {
  int code = sqlite3_errcode(ledger->db) & 0xff;
  const char *advice = code == SQLITE_BUSY       ? " (another connection holds it)"
                       : code == SQLITE_READONLY ? " (make it writable)"
                       : code == SQLITE_CORRUPT || code == SQLITE_NOTADB
                           ? " (restore it from a backup)"
                       : code == SQLITE_FULL ? " (free some space)"
                                             : "";
  return ledger_fail(ledger, "privacy ledger '%s': %s%s", ledger->path, sqlite3_errmsg(ledger->db),
                     advice);
}

int ledger_discrepancy(struct ledger *ledger, const char *format, ...) {
  va_list arguments;
  if (error_is_set(ledger->error)) return 0;
  /* A column whose text could not be read is no discrepancy. */
  if (sqlite3_errcode(ledger->db) == SQLITE_NOMEM) return error_set_memory(ledger->error);
  va_start(arguments, format);
  error_set_list(ledger->error, format, arguments);
  va_end(arguments);
  ledger->is_discrepant = !error_is_memory(ledger->error);
  return 0;
}

char *ledger_verdict(struct ledger *ledger) {
  int is_discrepant = ledger->is_discrepant, is_set = error_is_set(ledger->error);
  char *verdict = is_set == is_discrepant
                      ? sqlite3_mprintf("%s", is_set ? error_text(ledger->error) : "ok")
                      : 0;
  ledger->is_discrepant = 0;
  if (is_discrepant) error_clear(ledger->error);
  if (!verdict) error_set_memory(ledger->error);
  return verdict;
}

int ledger_check_name(struct ledger *ledger, const char *what, const char *name) {
  return !name || strlen(name) <= LEDGER_MOST_NAME ||
         ledger_fail(ledger, "%s has more than %d bytes (choose a shorter one)", what,
                     LEDGER_MOST_NAME);
}

int ledger_make_room(struct ledger *ledger, void *array, int used, size_t size) {
  void *elements;
  if (used & (used - 1)) return 1; /* `used` is no power of two, so there is room */
  memcpy(&elements, array, sizeof elements);
  elements = sqlite3_realloc64(elements, size * (sqlite3_uint64)(used ? 2 * used : 1));
  if (!elements) return ledger_fail(ledger, "out of memory");
  memcpy(array, &elements, sizeof elements);
  return 1;
}

int same_texts(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct error *ledger_error(const struct ledger *ledger) {
  return ledger->error;
}

struct json *ledger_json(struct ledger *ledger) {
  return &ledger->json;
}

int ledger_is_memory(const struct ledger *ledger) {
  return strcmp(ledger->path, MEMORY_PATH) == 0;
}

const char *ledger_path(const struct ledger *ledger) {
  return ledger->path;
}

const char *ledger_read_only(const struct ledger *ledger) {
  return ledger->read_only;
}

int ledger_protects(const struct ledger *ledger) {
  return ledger->protects;
}

int ledger_adjacency(const struct ledger *ledger) {
  return ledger->adjacency;
}

int ledger_is_inherited(const struct ledger *ledger) {
  return ledger->db && !process_is_same(&ledger->process);
}

void ledger_use_database(struct ledger *ledger, sqlite3 *db) {
  ledger->host = db;
}

sqlite3 *ledger_caller(const struct ledger *ledger) {
  return ledger->caller;
}

const char *ledger_audience(const struct ledger *ledger) {
  return ledger->audience;
}

int ledger_guest(struct ledger *ledger, const char *tier) {
  sqlite3_free(ledger->audience);
  ledger->audience = tier ? sqlite3_mprintf("%s", tier) : 0;
  return ledger->audience || !tier || ledger_fail(ledger, "out of memory");
}

int ledger_use_grant(struct ledger *ledger, const char *grant) {
  sqlite3_free(ledger->grant);
  ledger->grant = grant ? sqlite3_mprintf("%s", grant) : 0;
  return ledger->grant || !grant || ledger_fail(ledger, "out of memory");
}

/* ---- waiting, and interrupts of the host ----------------------------------------------------- */

/* To find out whether the host is interrupted, the ledger runs a short statement on the host's
** connection, the probe, which an interrupt or the host's progress handler ends with an error.
** sqlite3_is_interrupted() exists only since SQLite 3.41 and does not cover progress handlers. */

#define PATIENCE      10000  /* longest wait for another transaction, in milliseconds */
#define LONG_PATIENCE 120000 /* longest wait of a charged release, in milliseconds */
#define LOOK          20     /* milliseconds between two probes */

/* One run takes some thousands of instructions, so that SQLite calls the host's progress handler.
** If the handler is called less often than that, the instructions of several runs add up. */
static const char probe_sql[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
    " SELECT count(*) FROM n";

int ledger_caller_interrupted(struct ledger *ledger) {
  int64_t now = clock_milliseconds();
  if (!ledger->looked) ledger->looked = now;
  if (now - ledger->looked < LOOK) return 0;
  int rc = SQLITE_OK;
  if (!ledger->probe) rc = sqlite3_prepare_v2(ledger->caller, probe_sql, -1, &ledger->probe, 0);
  while (ledger->probe && (rc = sqlite3_step(ledger->probe)) == SQLITE_ROW) {
  }
  /* `rc` holds the error. Only SQLITE_INTERRUPT is an interrupt: the host can also refuse the
  ** probe. */
  sqlite3_reset(ledger->probe);
  ledger->looked = clock_milliseconds();
  return (rc & 0xff) == SQLITE_INTERRUPT;
}

int ledger_goes_on(struct ledger *ledger) {
  if (error_is_set(ledger->error) || !ledger->heeds_host) return !error_is_set(ledger->error);
  return !ledger_caller_interrupted(ledger) || ledger_fail(ledger, "interrupted");
}

void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient) {
  ledger->heeds_host = heeds_host;
  ledger->is_patient = is_patient;
}

void ledger_caller_end(struct ledger *ledger) {
  sqlite3_finalize(ledger->probe);
  ledger->probe = 0;
  ledger->looked = 0;
}

void wait_start(struct ledger *ledger) {
  ledger->deadline = clock_milliseconds() + (ledger->is_patient ? LONG_PATIENCE : PATIENCE);
}

int wait_moment(struct ledger *ledger, int calls) {
  static const unsigned steps[] = {1, 1, 2, 3};
  if (clock_milliseconds() >= ledger->deadline || !ledger_goes_on(ledger)) return 0;
  clock_sleep(1000 * (calls < 4 ? steps[calls] : 5));
  return 1;
}

/* ---- subjects -------------------------------------------------------------------------------- */

void touched_add(struct ledger *ledger, int64_t subject) {
  struct touched *touched = &ledger->touched;
  /* The last few entries are enough: a subject that is in the list twice does no harm. */
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

static const struct statement rollback = {.sql = "ROLLBACK", .changes = CHANGES_TRANSACTION};

/* Returns the slot of a statement; it is empty if the statement is not prepared. */
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

/* Prepares or resets a statement. Fails if it must not run now. */
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

/* Records what the statement is about to change. */
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
