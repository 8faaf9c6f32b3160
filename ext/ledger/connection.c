/* connection.c: the private connection to the ledger. This file owns the handle, opens the ledger's
** file, reads the ledger's terms, and begins and ends transactions.
**
** The ledger is a file of its own for two reasons. If diffuse wrote charges on the host's
** connection, a ROLLBACK of the host could erase a charge after the host has seen the value. If
** diffuse opened a second connection to the host's own file, the two connections would deadlock in
** rollback-journal mode. The journal mode of the ledger is TRUNCATE. In WAL mode a ledger would
** lose charges when a process forks, or when somebody copies the main file without the WAL.
** Tests: tests/ledger/test_files.py, tests/ledger/test_syncs.py, tests/ledger/test_locks.py,
** tests/ledger/test_libraries.py, tests/attacks/test_rollback.py, tests/ledger/test_crash.py,
** tests/ledger/test_moves.py */
#include <assert.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_connection.h"
#include "ledger/internal.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

#define APPLICATION_ID 1684432486

/* ---- the handle ------------------------------------------------------------------------------ */

static int go_on(void *ledger) {
  return ledger_goes_on(ledger);
}

static void stop_asking(void *ledger) {
  ledger_caller_end(ledger);
}

struct ledger *ledger_new(sqlite3 *host, const struct ledger_kinds *kinds, struct error *error) {
  struct ledger *ledger = sqlite3_malloc(sizeof *ledger);
  if (!ledger) return 0;
  memset(ledger, 0, sizeof *ledger);
  ledger->caller = ledger->host = host;
  ledger->kinds = kinds;
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
  touched_forget(ledger);
  sqlite3_free(ledger);
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

/* ---- pragmas --------------------------------------------------------------------------------- */

/* Runs a pragma and stores the value that it shows, or "". */
static int pragma(struct ledger *ledger, const char *sql, char value[16]) {
  sqlite3_stmt *statement = 0;
  *value = 0;
  if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    sqlite3_snprintf(16, value, "%s", sqlite3_column_text(statement, 0));
  return sqlite3_finalize(statement) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

int connection_is_ledger(struct ledger *ledger) {
  char id[16];
  return pragma(ledger, "PRAGMA application_id", id) && strtol(id, 0, 10) == APPLICATION_ID;
}

int connection_format(struct ledger *ledger) {
  char format[16];
  return pragma(ledger, "PRAGMA user_version", format) ? (int)strtol(format, 0, 10) : -1;
}

int connection_set_journal(struct ledger *ledger) {
  char mode[16];
  if (!pragma(ledger, "PRAGMA journal_mode", mode)) return 0;
  if ((strcmp(mode, "wal") != 0 || !ledger->read_only) &&
      !pragma(ledger, "PRAGMA journal_mode = TRUNCATE", mode))
    return 0;
  return strcmp(mode, ledger_is_memory(ledger) ? "memory" : "truncate") == 0 ||
         ledger_fail(ledger,
                     "the privacy ledger '%s' is in journal mode '%s', not truncate (close "
                     "other connections and try again%s)",
                     ledger->path, mode,
                     ledger->read_only ? ", where the database can be written" : "");
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

static void use_copy(struct ledger *ledger, sqlite3 *copy) {
  ledger->file = ledger->db;
  ledger->db = copy;
  memcpy(ledger->file_statements, ledger->statements, sizeof ledger->statements);
  memset(ledger->statements, 0, sizeof ledger->statements);
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
  return views_register(ledger, ledger->db) && (is_foreign(ledger) || lock_take(ledger, 0));
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
  return sqlite3_exec(ledger->db, pragmas, 0, 0, 0) == SQLITE_OK ? statements_prepare(ledger)
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
  char *text = column_copy(ledger, row, column);
  int choice = !text ? 0 : strcmp(text, names[1]) == 0 ? 1 : strcmp(text, names[2]) == 0 ? 2 : 0;
  sqlite3_free(text);
  if (!choice) ledger_fail_damaged(ledger, "dp_ledger");
  return choice;
}

static const struct statement select_terms = {.sql =
                                                  "SELECT id, protects, adjacency FROM dp_ledger"};
static const struct statement select_unit = {.sql = "SELECT unit FROM dp_ledger"};

struct terms {
  char *id;
  int protects, adjacency;
};

/* Reads the row of dp_ledger. Returns 0 without a row, or on failure. The caller frees the id. */
static int terms_read(struct ledger *ledger, struct terms *terms) {
  *terms = (struct terms){0};
  sqlite3_stmt *row = statement_bind(ledger, &select_terms, "");
  if (!statement_row(ledger, row)) return 0;
  terms->id = column_copy(ledger, row, 0);
  terms->protects = column_choice(ledger, row, 1, protects_name);
  terms->adjacency = column_choice(ledger, row, 2, adjacency_name);
  sqlite3_reset(row);
  if (terms->id && !error_is_set(ledger->error)) return 1;
  sqlite3_free(terms->id);
  terms->id = 0;
  return 0;
}

int connection_read_terms(struct ledger *ledger) {
  struct terms terms;
  if (!terms_read(ledger, &terms))
    return ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                       ledger->path);
  sqlite3_free(ledger->id);
  ledger->id = terms.id;
  ledger->protects = terms.protects;
  ledger->adjacency = terms.adjacency;
  return 1;
}

/* Checks that nobody has overwritten the open file with another ledger or set another journal mode.
** While a ledger is being created, there is nothing to compare. */
static int check_terms(struct ledger *ledger) {
  if (!ledger->id) return 1;
  struct terms now = {0};
  const char *journal = ledger->file || ledger_is_memory(ledger) ? "memory" : "truncate";
  int same = connection_format(ledger) == LEDGER_FORMAT && terms_read(ledger, &now) &&
             strcmp(now.id, ledger->id) == 0 && now.protects == ledger->protects &&
             now.adjacency == ledger->adjacency;
  char mode[16];
  same = same && pragma(ledger, "PRAGMA journal_mode", mode) && strcmp(mode, journal) == 0;
  sqlite3_free(now.id);
  return same ||
         ledger_fail(ledger, "the privacy ledger '%s' was replaced while it was open (reconnect)",
                     ledger->path);
}

char *ledger_unit(struct ledger *ledger) {
  return statement_text(ledger, statement_bind(ledger, &select_unit, ""));
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* A transaction holds the lock and sets the rounding mode. For long computations, it begins on a
** copy of the ledger in memory, which is lost at its end, so that other connections can write the
** ledger. */

#define PAGES 1000  /* pages to copy between two checks for an interrupt */
#define STEPS 10000 /* instructions of SQLite between two checks for an interrupt */

static const struct statement select_now = {.sql = "SELECT " STATEMENT_NOW};
static const struct statement begin_write = {.sql = "BEGIN IMMEDIATE",
                                             .changes = CHANGES_TRANSACTION};
static const struct statement begin_read = {.sql = "BEGIN", .changes = CHANGES_TRANSACTION};
static const struct statement commit = {.sql = "COMMIT", .changes = CHANGES_TRANSACTION};

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
  sqlite3_stmt *row = statement_bind(ledger, &select_now, "");
  if (!statement_row(ledger, row)) return 0;
  const char *now = column_text(ledger, row, 0);
  int is_known = strlen(now) == 24 && now[0] != '-';
  return is_known || ledger_fail(ledger, "the system's clock is outside the years 0 to 9999 (set "
                                         "the clock)");
}

/* On failure the function rolls back, because a BEGIN that fails for lack of memory can leave a
** transaction open. */
static int begin_with(struct ledger *ledger, const struct statement *begin, int refuse_writes,
                      int trial) {
  touched_forget(ledger);
  round_to_nearest(ledger);
  ledger->writes_refused = refuse_writes;
  /* Empties SQLite's page cache, because cached pages would hide that somebody has overwritten the
  ** file. */
  if (!error_is_set(ledger->error) && ledger->db && !ledger_is_memory(ledger))
    sqlite3_db_release_memory(ledger->db);
  if (lock_take(ledger, begin == &begin_write) && set_trial(ledger, trial) &&
      statement_run(ledger, begin, "") && check_terms(ledger) &&
      (begin == &begin_read || check_clock(ledger)))
    return 1;
  ledger_rollback(ledger);
  return 0;
}

int ledger_begin(struct ledger *ledger) {
  /* A guarded connection with a grant may spend the grant (L7). */
  if (ledger->read_only && !ledger->grant) return begin_with(ledger, &begin_read, 1, 0);
  return begin_with(ledger, &begin_write, 0, 0);
}

int ledger_begin_reading(struct ledger *ledger) {
  return begin_with(ledger, &begin_read, 0, 0);
}

int ledger_begin_trial(struct ledger *ledger) {
  return begin_with(ledger, &begin_write, 0, 1);
}

int ledger_begin_ending(struct ledger *ledger) {
  return begin_with(ledger, &begin_write, 0, 0);
}

/* ---- the end of a release -------------------------------------------------------------------- */

int ledger_resume(struct ledger *ledger) {
  error_clear(ledger->error);
  interrupt_heed(ledger, 0, 0);
  ledger_rollback(ledger);
  if (!ledger->db) return ledger_fail(ledger, "the privacy ledger was closed meanwhile");
  return connection_check(ledger);
}

int ledger_resume_patiently(struct ledger *ledger) {
  int resumed = ledger_resume(ledger);
  interrupt_heed(ledger, 1, 1);
  return resumed;
}

/* ---- a copy in memory ------------------------------------------------------------------------ */

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

int ledger_begin_copy(struct ledger *ledger) {
  sqlite3 *copy = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (!ledger_begin_reading(ledger)) return 0;
  if (own_connection_open(&copy, MEMORY_PATH, flags, 0) != SQLITE_OK)
    ledger_fail(ledger, "out of memory");
  if (!error_is_set(ledger->error) && views_register(ledger, copy)) {
    sqlite3_backup *backup = sqlite3_backup_init(copy, "main", ledger->db, "main");
    int rc = backup ? SQLITE_OK : sqlite3_errcode(copy);
    while (rc == SQLITE_OK && ledger_goes_on(ledger)) rc = sqlite3_backup_step(backup, PAGES);
    sqlite3_backup_finish(backup);
    if (rc != SQLITE_DONE)
      ledger_fail(ledger, "cannot copy the privacy ledger '%s': %s", ledger->path,
                  sqlite3_errstr(rc));
  }
  ledger_rollback(ledger);
  if (error_is_set(ledger->error)) {
    sqlite3_close(copy);
    return 0;
  }
  use_copy(ledger, copy);
  ledger->overdrawn = 0;
  ledger_watch(ledger, copy);
  return ledger_begin_trial(ledger);
}

int ledger_overdrawn(const struct ledger *ledger) {
  return ledger->overdrawn;
}

int ledger_begin_computing(struct ledger *ledger) {
  round_to_nearest(ledger);
  interrupt_heed(ledger, 1, 0);
  return !error_is_set(ledger->error);
}

int ledger_commit(struct ledger *ledger) {
  assert(ledger->unsynced != 1); /* a trial is never committed */
  if (!error_is_set(ledger->error) && connection_check(ledger)) seal_touched(ledger);
  int done = statement_run(ledger, &commit, "");
  ledger_rollback(ledger);
  return done;
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
