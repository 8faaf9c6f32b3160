/*
** transaction.c: begins and ends transactions on the private connection. A transaction holds the
** lock and sets the rounding mode. For long computations, it begins on a copy of the ledger in
** memory. While the copy is in use, other connections can write the ledger. Changes to the copy are
** lost when the copy is closed.
** Tests: tests/attacks/test_rollback.py, tests/ledger/test_crash.py, tests/ledger/test_moves.py
*/
#include <assert.h>
#include <fenv.h>
#include <string.h>

#include "base/own_connection.h"
#include "ledger/connection.h"
#include "ledger/display.h"
#include "ledger/handle.h"
#include "ledger/seal.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

#define PAGES 1000  /* pages to copy between two checks for an interrupt */
#define STEPS 10000 /* instructions of SQLite between two checks for an interrupt */

static const struct statement select_now = {.sql = "SELECT " STATEMENT_NOW};
static const struct statement begin_write = {.sql = "BEGIN IMMEDIATE",
                                             .changes = CHANGES_TRANSACTION};
static const struct statement begin_read = {.sql = "BEGIN", .changes = CHANGES_TRANSACTION};
static const struct statement commit = {.sql = "COMMIT", .changes = CHANGES_TRANSACTION};

/*
** Sets the rounding mode to nearest for the transaction, whatever mode the host uses. The code that
** rounds totals up relies on this mode, and dp_verify() compares totals to the last bit.
*/
static void round_to_nearest(struct ledger *ledger) {
  if (ledger->rounding >= 0) return;
  ledger->rounding = fegetround();
  fesetround(FE_TONEAREST);
}

/*
** Prepares the connection for a trial, which is rolled back and never committed, or for another
** transaction. When a transaction is rolled back, PRAGMA synchronous = FULL syncs the journal that
** SQLite then empties. A trial does not need this sync: it writes no page to the ledger's file
** (cache_spill = OFF), and its journal has no valid header before its first sync, which a trial
** never makes. A later transaction syncs the journal before it writes the header and the file.
** SQLite applies these pragmas when it compiles them, so the code compiles them each time.
*/
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

/*
** Checks that SQLite can write the time. Outside the years 0 to 9999 the ledger could not tell
** which of two days is later.
*/
static int check_clock(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, &select_now, "");
  if (!statement_row(ledger, row)) return 0;
  const char *now = column_text(ledger, row, 0);
  int is_known = strlen(now) == 24 && now[0] != '-';
  return is_known || ledger_fail(ledger, "the system's clock is outside the years 0 to 9999 (set "
                                         "the clock)");
}

/*
** Begins a transaction. On failure the function rolls back, because a BEGIN that fails for lack of
** memory can leave a transaction open.
*/
static int begin_with(struct ledger *ledger, const struct statement *begin, int refuse_writes,
                      int trial) {
  touched_forget(ledger);
  round_to_nearest(ledger);
  ledger->writes_refused = refuse_writes;
  /*
  ** Empties SQLite's page cache, because cached pages would hide that somebody has overwritten the
  ** file.
  */
  if (!error_is_set(ledger->error) && ledger->db && !ledger_is_memory(ledger))
    sqlite3_db_release_memory(ledger->db);
  if (lock_take(ledger, begin == &begin_write) && set_trial(ledger, trial) &&
      statement_run(ledger, begin, "") && connection_check_terms(ledger) &&
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

/* ---- a copy in memory ------------------------------------------------------------------------ */

static int is_interrupted(void *ledger) {
  return !ledger_goes_on(ledger);
}

/*
** Interrupts end a statement even while it computes its next row. This needs a progress handler,
** which some builds of SQLite leave out.
*/
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
  if (!error_is_set(ledger->error) && display_register(ledger, copy)) {
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
  connection_use_copy(ledger, copy);
  ledger_watch(ledger, copy);
  return ledger_begin_trial(ledger);
}

/* ---- computing ------------------------------------------------------------------------------- */

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
  connection_end_copy(ledger);
  statements_end(ledger);
  lock_drop(ledger);
  ledger_caller_end(ledger);
}
