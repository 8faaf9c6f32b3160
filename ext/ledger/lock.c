/*
** lock.c: the ledger's own lock, which SQLite knows nothing of.
**
** SQLite's locks on POSIX systems belong to the process: two copies of SQLite in one process do not
** see each other's, and when one of them closes the file, the other loses its own. Other VFSs lock
** in other ways. Every transaction on a ledger therefore also holds a lock that belongs to one open
** file, <ledger>-lock (os/lock_file.h). SQLite never opens that file. Readers take the same lock as
** writers: SQLite rolls back the journal of a transaction whose locks it cannot see.
*/
#include "ledger/internal.h"
#include "os/lock_file.h"

SQLITE_EXTENSION_INIT3

/* The file stands beside the ledger that SQLite has opened, where a symbolic link leads to. */
static char *name_of(const struct ledger *ledger) {
  const char *path = ledger->db ? sqlite3_db_filename(ledger->db, "main") : 0;
  return sqlite3_mprintf("%s-lock", path && *path ? path : ledger->path);
}

/*
** A process that may not create the file cannot create the ledger's journal either: it reads, and
** SQLite refuses what it writes.
*/
static int is_needed(struct ledger *ledger, int writes, const struct lock_error *error) {
  if (error->failure != LOCK_FORBIDDEN) return 1;
  return writes && ledger->db && sqlite3_db_readonly(ledger->db, "main") == 0;
}

/* One attempt: 1 the lock is held or not needed, 0 another has it, -1 an error. */
static int attempt(struct ledger *ledger, const char *name, int writes, struct lock_error *error) {
  int taken = lock_file_take(name, ledger->path, &ledger->lock, error);
  if (taken >= 0) return taken;
  if (!is_needed(ledger, writes, error)) return 1;
  /* Its owner has it, and has not let others open it yet. */
  return error->failure == LOCK_FORBIDDEN && error->is_there ? 0 : -1;
}

int lock_take(struct ledger *ledger, int writes) {
  struct lock_error error;
  if (error_is_set(ledger->error)) return 0;
  if (ledger->lock != LOCK_FILE_NONE || ledger->file || ledger_is_memory(ledger)) return 1;
  char *name = name_of(ledger);
  if (!name) return ledger_fail(ledger, "out of memory");
  wait_start(ledger);
  int taken, calls = 0;
  while ((taken = attempt(ledger, name, writes, &error)) == 0 && wait_moment(ledger, calls))
    calls++;
  if (taken < 0)
    ledger_fail(ledger, "privacy ledger '%s': cannot lock '%s': %s (%s)", ledger->path, name,
                error.text,
                error.failure == LOCK_NO_SPACE  ? "free some space"
                : error.failure == LOCK_IS_FILE ? "move this file away: it is not a lock"
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

/* After a fork() the lock is the parent's. */
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
