/* connection.c: the handle, and the private connection to the ledger: its lock, its statements, its
** transactions, and how these wait and notice interrupts of the host. open.c finds the file.
**
** The ledger is a file of its own for two reasons. If diffuse wrote charges on the host's
** connection, a ROLLBACK of the host could erase a charge after the host has seen the value. If
** diffuse opened a second connection to the host's own file, the two connections would deadlock in
** rollback-journal mode. The journal mode of the ledger is TRUNCATE. In WAL mode a ledger would
** lose charges when a process forks, or when somebody copies the main file without the WAL.
** Tests: tests/ledger/test_files.py, tests/ledger/test_syncs.py, tests/ledger/test_locks.py,
** tests/ledger/test_libraries.py, tests/attacks/test_rollback.py, tests/ledger/test_crash.py,
** tests/ledger/test_moves.py, tests/ledger/test_concurrency.py */
#include <assert.h>
#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/own_connection.h"
#include "ledger/internal.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

#define APPLICATION_ID 1684432486

/* Returns whether this process inherited the connection by fork(). It then belongs to the parent
** (L6): if the child closed it or rolled back, it could undo an open transaction of the parent. */
static int ledger_is_inherited(const struct ledger *ledger) {
  return ledger->db && !process_is_same(&ledger->process);
}

/* ---- the handle ------------------------------------------------------------------------------ */

static int go_on(void *ledger) {
  return ledger_goes_on(ledger);
}

static void stop_asking(void *ledger) {
  ledger_caller_end(ledger);
}

struct ledger *ledger_new(sqlite3 *host, register_words *words, struct error *error) {
  struct ledger *ledger = sqlite3_malloc(sizeof *ledger);
  if (!ledger) return 0;
  memset(ledger, 0, sizeof *ledger);
  ledger->caller = ledger->host = host;
  ledger->words = words;
  ledger->error = error;
  ledger->json = (struct json){0, error, go_on, stop_asking, ledger};
  ledger->lock = LOCK_FILE_NONE;
  ledger->rounding = -1;
  return ledger;
}

void ledger_free(struct ledger *ledger) {
  if (!ledger) return;
  connection_close(ledger);
  process_forget(&ledger->process);
  json_close(&ledger->json);
  sqlite3_free(ledger->path);
  sqlite3_free(ledger->audience);
  sqlite3_free(ledger->grant);
  sqlite3_free(ledger->touched.subjects);
  sqlite3_free(ledger);
}

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

void ledger_use_database(struct ledger *ledger, sqlite3 *db) {
  ledger->host = db;
}

sqlite3 *ledger_caller(const struct ledger *ledger) {
  return ledger->caller;
}

const char *ledger_audience(const struct ledger *ledger) {
  return ledger->audience;
}

/* Puts a copy of a text, or null, in place of a member's text. */
static int keep_text(struct ledger *ledger, char **member, const char *text) {
  sqlite3_free(*member);
  *member = text ? sqlite3_mprintf("%s", text) : 0;
  return *member || !text || ledger_fail(ledger, "out of memory");
}

int ledger_guest(struct ledger *ledger, const char *tier) {
  return keep_text(ledger, &ledger->audience, tier);
}

int ledger_use_grant(struct ledger *ledger, const char *grant) {
  return keep_text(ledger, &ledger->grant, grant);
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

void ledger_caller_end(struct ledger *ledger) {
  sqlite3_finalize(ledger->probe);
  ledger->probe = 0;
  ledger->looked = 0;
}

static void wait_start(struct ledger *ledger) {
  ledger->deadline = clock_milliseconds() + (ledger->is_patient ? LONG_PATIENCE : PATIENCE);
}

/* Waits for a few milliseconds. Returns 0 if the limit is over or the host is interrupted. `calls`
** counts the earlier calls for the same wait. */
static int wait_moment(struct ledger *ledger, int calls) {
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
  if (ledger_make_room(ledger, &touched->subjects, touched->count, sizeof *touched->subjects))
    touched->subjects[touched->count++] = subject;
}

static void touched_forget(struct ledger *ledger) {
  sqlite3_free(ledger->touched.subjects);
  ledger->touched = (struct touched){0};
}

int touched_has(const struct ledger *ledger, int64_t subject) {
  for (int i = 0; i < ledger->touched.count; i++) {
    if (ledger->touched.subjects[i] == subject) return 1;
  }
  return 0;
}

/* ---- statements ------------------------------------------------------------------------------ */

static const char rollback[] = "ROLLBACK";

/* Returns the slot of a statement; it is empty if the statement is not prepared. */
static struct prepared *slot_of(struct ledger *ledger, const char *sql) {
  size_t at = (uintptr_t)sql / 16 % STATEMENT_SLOTS;
  for (int i = 0; i < STATEMENT_SLOTS; i++, at = (at + 1) % STATEMENT_SLOTS) {
    struct prepared *slot = &ledger->statements[at];
    if (!slot->sql || slot->sql == sql) return slot;
  }
  assert(0 && "there are fewer statements than slots");
  return 0;
}

static void statements_finalize(struct ledger *ledger) {
  for (int i = 0; i < STATEMENT_SLOTS; i++) {
    sqlite3_finalize(ledger->statements[i].prepared);
    ledger->statements[i] = (struct prepared){0, 0};
  }
}

/* Prepares or resets a statement. Fails if it must not run now. */
static sqlite3_stmt *ready(struct ledger *ledger, enum change changes, const char *sql) {
  if (error_is_set(ledger->error)) return 0;
  struct prepared *slot = slot_of(ledger, sql);
  if (!slot->sql) {
    if (sqlite3_prepare_v3(ledger->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &slot->prepared, 0) !=
        SQLITE_OK)
      ledger_fail_sqlite(ledger);
    if (slot->prepared) slot->sql = sql;
    assert(!slot->prepared || changes || sqlite3_stmt_readonly(slot->prepared));
  }
  int writes = changes > CHANGES_TRANSACTION;
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

/* Binds a statement, and records what it is about to change. */
static sqlite3_stmt *bind(struct ledger *ledger, enum change changes, const char *sql,
                          const char *types, va_list arguments) {
  sqlite3_stmt *prepared = ready(ledger, changes, sql);
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
  if (!prepared) return 0;
  if (rc != SQLITE_OK) ledger_fail_sqlite(ledger);
  if (changes == CHANGES_RELEASE) touched_add(ledger, first);
  if (changes == CHANGES_TERMS) {
    touched_add(ledger, SEAL_TERMS);
    touched_add(ledger, SEAL_ORDERS);
  }
  if (changes == CHANGES_BUDGET) ledger->touched.books = 1;
  return error_is_set(ledger->error) ? 0 : prepared;
}

sqlite3_stmt *statement_bind(struct ledger *ledger, const char *sql, const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *prepared = bind(ledger, CHANGES_NOTHING, sql, types, arguments);
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

int statement_run(struct ledger *ledger, enum change changes, const char *sql, const char *types,
                  ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *prepared = bind(ledger, changes, sql, types, arguments);
  va_end(arguments);
  while (statement_row(ledger, prepared)) {
  }
  return !error_is_set(ledger->error);
}

int64_t statement_integer(struct ledger *ledger, const char *sql, const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *row = bind(ledger, CHANGES_NOTHING, sql, types, arguments);
  va_end(arguments);
  int64_t number = statement_row(ledger, row) ? sqlite3_column_int64(row, 0) : 0;
  sqlite3_reset(row);
  return number;
}

char *statement_text(struct ledger *ledger, const char *sql, const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *row = bind(ledger, CHANGES_NOTHING, sql, types, arguments);
  va_end(arguments);
  char *text = statement_row(ledger, row) ? column_copy(ledger, row, 0) : 0;
  sqlite3_reset(row);
  return text;
}

int statement_discrepancy(struct ledger *ledger, const char *sql) {
  sqlite3_stmt *row = statement_bind(ledger, sql, "");
  if (!statement_row(ledger, row)) return !error_is_set(ledger->error);
  return ledger_discrepancy(ledger, "%s: '%s' %s", column_text(ledger, row, 0),
                            column_text(ledger, row, 1), column_text(ledger, row, 2));
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

struct ledger_value column_value(sqlite3_stmt *row) {
  return (struct ledger_value){(const char *)sqlite3_column_text(row, 0),
                               sqlite3_column_int(row, 1),
                               sqlite3_column_double(row, 2),
                               column_number(row, 3),
                               column_number(row, 4),
                               column_number(row, 5)};
}

/* ---- the end of a transaction ---------------------------------------------------------------- */

void statements_end(struct ledger *ledger) {
  if (!ledger->db || ledger_is_inherited(ledger)) return;
  for (int i = 0; i < STATEMENT_SLOTS; i++) sqlite3_reset(ledger->statements[i].prepared);
  if (sqlite3_get_autocommit(ledger->db)) return;
  sqlite3_stmt *prepared = slot_of(ledger, rollback)->prepared;
  /* An error of the rollback does not matter, because the first error is already set. */
  sqlite3_step(prepared);
  sqlite3_reset(prepared);
}

/* ---- the lock, in addition to the locks of SQLite -------------------------------------------- */

/* On POSIX systems SQLite's locks belong to the process. Two copies of SQLite in one process do not
** see each other's locks, and when one copy closes the file, the other loses its locks. Moreover,
** different VFSs lock in different ways. Every transaction therefore also holds a lock on the file
** <ledger>-lock, which belongs to the open file, not to the process (os/os.h), and which SQLite
** never opens. Readers take the same lock as writers: a reader that does not see the locks of a
** running transaction would roll back its journal. */

/* Tries once. Returns 1 if this handle now holds the lock or does not need it, 0 if another
** connection holds it, and -1 on error. */
static int attempt(struct ledger *ledger, const char *name, int writes, struct lock_error *error) {
  int taken = lock_file_take(name, ledger->path, &ledger->lock, error);
  if (taken >= 0 || error->failure != LOCK_FORBIDDEN) return taken;
  /* A process that may not create the lock file cannot create the ledger's journal either, so
  ** SQLite refuses its writes. Such a process may read without the lock. */
  if (!writes || !ledger->db || sqlite3_db_readonly(ledger->db, "main") != 0) return 1;
  /* If the file is there but cannot be opened, another process has just created and locked it. */
  return error->is_there ? 0 : -1;
}

/* Waits for the lock. Returns 1 if this handle holds it now or needs none. `writes`: the
** transaction will write. */
static int lock_take(struct ledger *ledger, int writes) {
  struct lock_error error;
  if (error_is_set(ledger->error)) return 0;
  if (ledger->lock != LOCK_FILE_NONE || ledger->file || ledger_is_memory(ledger)) return 1;
  /* The lock is beside the file that SQLite has opened, after it resolved symbolic links. */
  const char *opened = ledger->db ? sqlite3_db_filename(ledger->db, "main") : 0;
  char *name = sqlite3_mprintf("%s-lock", opened && *opened ? opened : ledger->path);
  if (!name) return ledger_fail(ledger, "out of memory");
  wait_start(ledger);
  int taken, calls = 0;
  while ((taken = attempt(ledger, name, writes, &error)) == 0 && wait_moment(ledger, calls))
    calls++;
  /* Advice: The file system cannot lock files (many network drives), is full, or the lock file
     is a folder. */
  if (taken < 0)
    ledger_fail(ledger, "privacy ledger '%s': cannot lock '%s': %s (%s)", ledger->path, name,
                error.text,
                error.failure == LOCK_NO_SPACE    ? "free some space"
                : error.failure == LOCK_FORBIDDEN ? "make its folder writable"
                : error.failure == LOCK_IS_FILE   ? "move this file away: it is not a lock"
                                                  : "put it where files can be locked");
  if (taken == 0)
    ledger_fail(ledger, "privacy ledger '%s': locked (another connection holds it)", ledger->path);
  if (ledger->lock != LOCK_FILE_NONE) {
    ledger->lock_name = name;
  } else {
    sqlite3_free(name);
  }
  return taken > 0;
}

/* After a fork() the lock belongs to the parent process. */
void lock_drop(struct ledger *ledger) {
  if (ledger->lock == LOCK_FILE_NONE) return;
  if (process_is_same(&ledger->process)) {
    lock_file_drop(ledger->lock, ledger->lock_name);
  } else {
    lock_file_forget(ledger->lock);
  }
  sqlite3_free(ledger->lock_name);
  ledger->lock = LOCK_FILE_NONE;
  ledger->lock_name = 0;
}

int connection_is_ledger(struct ledger *ledger) {
  return statement_integer(ledger, "PRAGMA application_id", "") == APPLICATION_ID;
}

/* Returns the journal mode, of which `pragma` asks, or which it sets. */
static char *journal_mode(struct ledger *ledger, const char *pragma) {
  char *mode = 0;
  sqlite3_stmt *row = 0;
  if (sqlite3_prepare_v2(ledger->db, pragma, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW)
    mode = column_copy(ledger, row, 0);
  if (sqlite3_finalize(row) != SQLITE_OK) ledger_fail_sqlite(ledger);
  if (!mode) ledger_fail(ledger, "out of memory"); /* also if SQLite shows NULL for lack of it */
  return mode;
}

int connection_set_journal(struct ledger *ledger) {
  char *mode = journal_mode(ledger, "PRAGMA journal_mode");
  if (mode && (strcmp(mode, "wal") != 0 || !ledger->read_only)) {
    sqlite3_free(mode);
    mode = journal_mode(ledger, "PRAGMA journal_mode = TRUNCATE");
  }
  if (mode && strcmp(mode, ledger_is_memory(ledger) ? "memory" : "truncate") != 0)
    ledger_fail(ledger,
                "the privacy ledger '%s' is in journal mode '%s', not truncate (close "
                "other connections and try again%s)",
                ledger->path, mode, ledger->read_only ? ", where the database can be written" : "");
  sqlite3_free(mode);
  return !error_is_set(ledger->error);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads a number of four bytes from the header of the file, without SQLite's locks and journals.
** Returns 0 if it cannot be read, for example because the file is empty. */
static int read_header(const struct ledger *ledger, int offset, uint32_t *number) {
  sqlite3_file *file = 0;
  unsigned char bytes[4];
  if (ledger_is_memory(ledger) ||
      sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      !file->pMethods || file->pMethods->xRead(file, bytes, sizeof bytes, offset) != SQLITE_OK)
    return 0;
  *number =
      (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  return 1;
}

/* Returns whether the file belongs to another application, so that diffuse must not change it. An
** empty file is not foreign: another process may be creating a ledger. */
static int is_foreign(struct ledger *ledger) {
  uint32_t id;
  return read_header(ledger, 68, &id) && id != APPLICATION_ID;
}

int ledger_version(const struct ledger *ledger, uint32_t *version) {
  return ledger->db && !ledger_is_inherited(ledger) && read_header(ledger, 24, version);
}

static void end_copy(struct ledger *ledger) {
  if (!ledger->file) return;
  statements_finalize(ledger);
  sqlite3_close(ledger->db);
  ledger->db = ledger->file;
  ledger->file = 0;
  memcpy(ledger->statements, ledger->file_statements, sizeof ledger->statements);
}

void connection_close(struct ledger *ledger) {
  end_copy(ledger);
  ledger_caller_end(ledger);
  if (ledger_is_inherited(ledger)) {
    memset(ledger->statements, 0, sizeof ledger->statements);
  } else if (ledger->db) {
    struct error error = error_take(ledger->error);
    int heeds_host = ledger->heeds_host;
    ledger->heeds_host = 0;
    if (file_has_content(ledger->path) && !is_foreign(ledger)) lock_take(ledger, 0);
    statements_finalize(ledger);
    sqlite3_close(ledger->db);
    error_restore(ledger->error, error);
    ledger->heeds_host = heeds_host;
  }
  lock_drop(ledger);
  ledger->db = 0;
  sqlite3_free(ledger->id);
  ledger->id = 0;
}

/* The busy handler. SQLite's own waits for whole seconds if SQLite was built without usleep(). */
static int wait_for_others(void *context, int calls) {
  struct ledger *ledger = context;
  if (calls == 0) wait_start(ledger);
  return wait_moment(ledger, calls);
}

/* The platform's own VFS opens the file, whatever the host's default VFS is: connections whose VFSs
** lock in different ways would not see each other's locks. */
int connection_open(struct ledger *ledger) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  process_remember(&ledger->process);
  const char *vfs = ledger_is_memory(ledger) ? 0 : FILE_VFS;
  if (vfs && !sqlite3_vfs_find(vfs))
    return ledger_fail(ledger,
                       "this SQLite has no VFS '%s', with which ledgers are locked (use another "
                       "build of SQLite)",
                       vfs);
  if (own_connection_open(&ledger->db, ledger->path, flags, vfs) != SQLITE_OK) {
    ledger_fail(ledger, "cannot open the privacy ledger '%s': %s (check its permissions)",
                ledger->path, ledger->db ? sqlite3_errmsg(ledger->db) : "out of memory");
    connection_close(ledger);
    return 0;
  }
  sqlite3_busy_handler(ledger->db, wait_for_others, ledger);
  return is_foreign(ledger) || lock_take(ledger, 0);
}

int connection_start(struct ledger *ledger) {
  if (!connection_open(ledger)) return 0;
  ledger->unsynced = 0;
  /* On macOS, fsync() alone leaves the data in the cache of the disk (fullfsync). The exact sums of
  ** a series and its book of allowances leave no bytes behind (secure_delete). Pages that SQLite
  ** has mapped would hide from it that somebody has overwritten the file (mmap_size). */
  static const char pragmas[] =
      "PRAGMA auto_vacuum = NONE; PRAGMA max_page_count = 2147483646; PRAGMA mmap_size = 0;"
      "PRAGMA synchronous = FULL; PRAGMA cache_spill = ON; PRAGMA fullfsync = ON;"
      "PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON";
  return sqlite3_exec(ledger->db, pragmas, 0, 0, 0) == SQLITE_OK
             ? statement_bind(ledger, rollback, "") != 0
             : ledger_fail_sqlite(ledger);
}

int connection_check(struct ledger *ledger) {
  if (ledger_is_inherited(ledger))
    return ledger_fail(ledger, "the privacy ledger was opened before fork() (reconnect)");
  int moved = 0;
  if (!ledger_is_memory(ledger) &&
      sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
      moved)
    return ledger_fail(ledger,
                       "the privacy ledger '%s' was moved or deleted (restore it and "
                       "reconnect)",
                       ledger->path);
  return 1;
}

/* ---- terms ----------------------------------------------------------------------------------- */

const char *const protects_name[3] = {"unit", "unit", "row"};
const char *const adjacency_name[3] = {"add-remove", "add-remove", "replace"};

/* Returns the index (1 or 2) of the name that a column holds, or 0 after reporting damage. */
static int column_choice(struct ledger *ledger, sqlite3_stmt *row, int column,
                         const char *const names[3]) {
  const char *text = column_text(ledger, row, column);
  for (int i = 1; i < 3; i++)
    if (strcmp(text, names[i]) == 0) return i;
  return ledger_fail_damaged(ledger, "dp_ledger");
}

int connection_read_terms(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, "SELECT id, protects, adjacency FROM dp_ledger", "");
  sqlite3_free(ledger->id);
  ledger->id = 0;
  if (statement_row(ledger, row)) {
    ledger->id = column_copy(ledger, row, 0);
    ledger->protects = column_choice(ledger, row, 1, protects_name);
    ledger->adjacency = column_choice(ledger, row, 2, adjacency_name);
  }
  sqlite3_reset(row);
  return (ledger->id && !error_is_set(ledger->error)) ||
         ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                     ledger->path);
}

/* Checks that nobody has overwritten the open file with another ledger or set another journal mode.
** While a ledger is being created, there is nothing to compare. */
static int check_terms(struct ledger *ledger) {
  if (!ledger->id) return 1;
  const char *journal = ledger->file || ledger_is_memory(ledger) ? "memory" : "truncate";
  int same =
      statement_integer(ledger, "PRAGMA user_version", "") == LEDGER_FORMAT &&
      statement_integer(
          ledger, "SELECT 1 FROM dp_ledger WHERE id = ? AND protects = ? AND adjacency = ?", "sss",
          ledger->id, protects_name[ledger->protects], adjacency_name[ledger->adjacency]);
  char *mode = same ? journal_mode(ledger, "PRAGMA journal_mode") : 0;
  same = mode && strcmp(mode, journal) == 0;
  sqlite3_free(mode);
  return same ||
         ledger_fail(ledger, "the privacy ledger '%s' was replaced while it was open (reconnect)",
                     ledger->path);
}

char *ledger_unit(struct ledger *ledger) {
  return statement_text(ledger, "SELECT unit FROM dp_ledger", "");
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* A transaction holds the lock and sets the rounding mode. For long computations, it begins on a
** copy of the ledger in memory, which is lost at its end, so that other connections can write the
** ledger. */

#define STEPS 10000 /* instructions of SQLite between two checks for an interrupt */

/* Sets the rounding mode to nearest, whatever the host uses: the code that rounds totals up relies
** on it, and dp_verify() compares totals to the last bit. */
static void round_to_nearest(struct ledger *ledger) {
  if (ledger->rounding >= 0) return;
  ledger->rounding = fegetround();
  fesetround(FE_TONEAREST);
}

/* Prepares the connection for a trial, which is rolled back and never committed, or for another
** transaction. When a transaction is rolled back, PRAGMA synchronous = FULL syncs the journal that
** SQLite then empties. A trial does not need this sync: it writes no page to the ledger's file
** (cache_spill = OFF), and its journal has no valid header before its first sync, which a trial
** never makes. A later transaction syncs the journal before it writes the header and the file.
** SQLite applies these pragmas when it compiles them, so the code compiles them each time. */
static int set_trial(struct ledger *ledger, int trial) {
  if (error_is_set(ledger->error) || !ledger->db || ledger->file || ledger->unsynced == trial)
    return !error_is_set(ledger->error);
  ledger->unsynced = -1;
  if (sqlite3_exec(ledger->db,
                   trial ? "PRAGMA cache_spill = OFF; PRAGMA synchronous = NORMAL"
                         : "PRAGMA synchronous = FULL; PRAGMA cache_spill = ON",
                   0, 0, 0) != SQLITE_OK)
    return ledger_fail_sqlite(ledger);
  ledger->unsynced = trial;
  return 1;
}

/* Outside the years 0 to 9999 the ledger could not tell which of two days is later. */
static int check_clock(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, "SELECT " STATEMENT_NOW, "");
  if (!statement_row(ledger, row)) return 0;
  const char *now = column_text(ledger, row, 0);
  int is_known = strlen(now) == 24 && now[0] != '-';
  return is_known || ledger_fail(ledger, "the system's clock is outside the years 0 to 9999 (set "
                                         "the clock)");
}

/* On failure the function rolls back, because a BEGIN that fails for lack of memory can leave a
** transaction open. */
static int begin_with(struct ledger *ledger, int writes, int refuse_writes, int trial) {
  touched_forget(ledger);
  round_to_nearest(ledger);
  ledger->writes_refused = refuse_writes;
  /* Empties SQLite's page cache, because cached pages would hide that somebody has overwritten the
  ** file. */
  if (!error_is_set(ledger->error) && ledger->db && !ledger_is_memory(ledger))
    sqlite3_db_release_memory(ledger->db);
  if (lock_take(ledger, writes) && set_trial(ledger, trial) &&
      statement_run(ledger, CHANGES_TRANSACTION, writes ? "BEGIN IMMEDIATE" : "BEGIN", "") &&
      check_terms(ledger) && (!writes || check_clock(ledger)))
    return 1;
  ledger_rollback(ledger);
  return 0;
}

int ledger_begin(struct ledger *ledger) {
  /* A guarded connection with a grant may spend the grant (L7). */
  int may_write = !ledger->read_only || ledger->grant;
  return begin_with(ledger, may_write, !may_write, 0);
}

int ledger_begin_reading(struct ledger *ledger) {
  return begin_with(ledger, 0, 0, 0);
}

int ledger_begin_trial(struct ledger *ledger) {
  return begin_with(ledger, 1, 0, 1);
}

int ledger_begin_ending(struct ledger *ledger) {
  return begin_with(ledger, 1, 0, 0);
}

/* ---- the end of a release -------------------------------------------------------------------- */

/* Clears the error, and sets how the transactions wait. Returns 0 after a fork(). */
int ledger_wake(struct ledger *ledger, int heeds_host, int is_patient) {
  error_clear(ledger->error);
  ledger->heeds_host = heeds_host;
  ledger->is_patient = is_patient;
  ledger_rollback(ledger); /* a transaction may be open since memory ran out */
  return !ledger_is_inherited(ledger) || connection_check(ledger);
}

int ledger_resume(struct ledger *ledger) {
  if (!ledger_wake(ledger, 0, 0)) return 0;
  if (!ledger->db) return ledger_fail(ledger, "the privacy ledger was closed meanwhile");
  return connection_check(ledger);
}

int ledger_resume_patiently(struct ledger *ledger) {
  int resumed = ledger_resume(ledger);
  ledger->heeds_host = ledger->is_patient = 1;
  return resumed;
}

static int is_interrupted(void *ledger) {
  return !ledger_goes_on(ledger);
}

/* Interrupts end a statement even while it computes its next row. This needs a progress handler,
** which some builds of SQLite leave out. */
void ledger_watch(struct ledger *ledger, sqlite3 *db) {
#ifndef SQLITE_CORE
  if (sqlite3_api->progress_handler) sqlite3_progress_handler(db, STEPS, is_interrupted, ledger);
#else
  sqlite3_progress_handler(db, STEPS, is_interrupted, ledger);
#endif
}

int ledger_overdrawn(const struct ledger *ledger) {
  return ledger->overdrawn;
}

int ledger_begin_computing(struct ledger *ledger) {
  round_to_nearest(ledger);
  ledger->heeds_host = 1;
  ledger->is_patient = 0;
  return !error_is_set(ledger->error);
}

void ledger_rollback(struct ledger *ledger) {
  touched_forget(ledger);
  if (ledger->rounding >= 0) fesetround(ledger->rounding);
  ledger->rounding = -1;
  end_copy(ledger);
  ledger->overdrawn = 0;
  statements_end(ledger);
  lock_drop(ledger);
  ledger_caller_end(ledger);
}
