/*
** lock.c: takes the ledger's own lock, in addition to the locks of SQLite.
**
** On POSIX systems SQLite's locks belong to the process. Two copies of SQLite in one process do not
** see each other's locks, and when one copy closes the file, the other copy loses its locks.
** Moreover, different VFSs lock in different ways. Every transaction on a ledger therefore also
** holds a lock on the file <ledger>-lock. This lock belongs to the open file, not to the process
** (os/file.h). SQLite never opens the file <ledger>-lock. Readers take the same lock as
** writers. Without this lock, a reader that does not see the locks of a running transaction would
** roll back the journal of this transaction.
** Tests: tests/ledger/test_locks.py, tests/ledger/test_libraries.py
*/
#include "ledger/lock.h"

#include "ledger/interrupt.h"
#include "os/file.h"

SQLITE_EXTENSION_INIT3

/*
** Tries once to take the lock. Returns 1 if this handle now holds the lock or does not need the
** lock, 0 if another connection holds the lock, and -1 on error.
*/
static int attempt(struct ledger *ledger, const char *name, int writes, struct lock_error *error) {
  int taken = lock_file_take(name, ledger->path, &ledger->lock, error);
  if (taken >= 0 || error->failure != LOCK_FORBIDDEN) return taken;
  /*
  ** A process that may not create the lock file cannot create the ledger's journal either, so
  ** SQLite refuses its writes. Such a process may read without the lock.
  */
  if (!writes || !ledger->db || sqlite3_db_readonly(ledger->db, "main") != 0) return 1;
  /* If the file is there but cannot be opened, another process has just created and locked it. */
  return error->is_there ? 0 : -1;
}

int lock_take(struct ledger *ledger, int writes) {
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

/*
** Releases the lock. After a fork() the lock belongs to the parent process, so the child only
** closes the file.
*/
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
