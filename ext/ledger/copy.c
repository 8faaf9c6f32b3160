/*
** copy.c: makes a copy of the ledger in memory for long computations. While the copy is in use,
** other connections can write the ledger. Changes to the copy are lost when the copy is closed.
** Tests: tests/ledger/test_moves.py
*/
#include "ledger/connection.h"
#include "ledger/display.h"

SQLITE_EXTENSION_INIT3

#define PAGES 1000  /* pages to copy between two checks for an interrupt */
#define STEPS 10000 /* instructions of SQLite between two checks for an interrupt */

static int copy_pages(struct ledger *ledger, sqlite3 *copy) {
  sqlite3_backup *backup = sqlite3_backup_init(copy, "main", ledger->db, "main");
  int rc = backup ? SQLITE_OK : sqlite3_errcode(copy);
  while (rc == SQLITE_OK && ledger_goes_on(ledger)) rc = sqlite3_backup_step(backup, PAGES);
  sqlite3_backup_finish(backup);
  if (rc == SQLITE_DONE) return 1;
  return ledger_fail(ledger, "cannot copy the privacy ledger '%s': %s", ledger->path,
                     sqlite3_errstr(rc));
}

static int is_interrupted(void *ledger) {
  return !ledger_goes_on(ledger);
}

/*
** Lets an interrupt of the host end a statement on the copy, even while the statement computes its
** next row. This needs a progress handler, which some builds of SQLite leave out. The handler is
** set on the connection of the copy, never on the host's connection.
*/
static void watch_copy(struct ledger *ledger) {
#ifndef SQLITE_CORE
  if (sqlite3_api->progress_handler)
    sqlite3_progress_handler(ledger->db, STEPS, is_interrupted, ledger);
#else
  sqlite3_progress_handler(ledger->db, STEPS, is_interrupted, ledger);
#endif
}

int ledger_begin_copy(struct ledger *ledger) {
  sqlite3 *copy = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (!ledger_begin_reading(ledger)) return 0;
  if (sqlite3_open_v2(MEMORY_PATH, &copy, flags, 0) != SQLITE_OK)
    ledger_fail(ledger, "out of memory");
  int copied =
      !error_is_set(ledger->error) && display_register(ledger, copy) && copy_pages(ledger, copy);
  ledger_rollback(ledger);
  if (!copied) {
    sqlite3_close(copy);
    return 0;
  }
  connection_use_copy(ledger, copy);
  watch_copy(ledger);
  return ledger_begin_trial(ledger);
}
