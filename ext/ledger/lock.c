/*
** lock.c: the ledger's own lock, which SQLite knows nothing of.
**
** SQLite's locks on POSIX systems belong to the process: two copies of SQLite in one process do not
** see each other's, and when one of them closes the file, the other loses its own. Other VFSs lock
** in other ways. Every transaction on a ledger therefore also holds a lock that belongs to one open
** file, flock() on <ledger>-lock. SQLite never opens that file. Readers take the same lock as
** writers: SQLite rolls back the journal of a transaction whose locks it cannot see.
**
** The file is there during transactions only, and has no content. Whoever gets the lock checks that
** the file still has its name, and whoever gives it back deletes the file first. So two never have
** the lock of one name, and what a killed process leaves is used and deleted by the next.
*/
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

#define PERMISSIONS 0777
#define OWNER       0600

/* The file stands beside the ledger that SQLite has opened, where a symbolic link leads to. */
static char *name_of(const struct ledger *ledger) {
  const char *path = ledger->db ? sqlite3_db_filename(ledger->db, "main") : 0;
  return sqlite3_mprintf("%s-lock", path && *path ? path : ledger->path);
}

/* A file that cannot be written can still be locked. */
static int open_lock(const struct ledger *ledger, const char *name) {
  struct stat status;
  mode_t mode = stat(ledger->path, &status) == 0 ? status.st_mode & PERMISSIONS : OWNER;
  int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int file = open(name, O_RDWR | O_CREAT | flags, mode);
  int error = errno;
  if (file < 0 && (error == EACCES || error == EPERM || error == EROFS))
    file = open(name, O_RDONLY | flags);
  errno = error;
  return file;
}

static int has_name(int file, const char *name) {
  struct stat opened, named;
  return fstat(file, &opened) == 0 && stat(name, &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

/* A file with content is somebody's, and would be deleted. */
static int is_lock(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

/* 1: the lock is held. 0: another has it, or has just deleted the file. -1: an error. */
static int try_lock(int file, const char *name) {
  if (!is_lock(file)) {
    errno = EEXIST;
    return -1;
  }
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return has_name(file, name);
  return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

/* Others must be able to open the file if they can open the ledger. It protects nothing itself. */
static void take_permissions(const struct ledger *ledger, int file) {
  struct stat theirs, ours;
  if (stat(ledger->path, &theirs) != 0 || fstat(file, &ours) != 0) return;
  if (geteuid() == 0 && (ours.st_uid != theirs.st_uid || ours.st_gid != theirs.st_gid) &&
      fchown(file, theirs.st_uid, theirs.st_gid) != 0)
    return;
  if ((ours.st_mode & PERMISSIONS) != (theirs.st_mode & PERMISSIONS))
    (void)fchmod(file, theirs.st_mode & PERMISSIONS);
}

/*
** A process that may not create the file cannot create the ledger's journal either: it reads, and
** SQLite refuses what it writes.
*/
static int is_needed(struct ledger *ledger, int writes, int error) {
  if (error != EACCES && error != EPERM && error != EROFS && error != ENOENT) return 1;
  return writes && ledger->db && sqlite3_db_readonly(ledger->db, "main") == 0;
}

/*
** One attempt: 1 the lock is held or not needed, 0 another has it, -1 an error, which errno says.
*/
static int attempt(struct ledger *ledger, const char *name, int writes) {
  int file = open_lock(ledger, name), error = errno;
  if (file < 0 && !is_needed(ledger, writes, error)) return 1;
  /* Its owner has it, and has not let others open it yet. */
  if (file < 0) return error == EACCES && access(name, F_OK) == 0 ? 0 : -1;
  int taken = try_lock(file, name);
  error = errno;
  if (taken == 1) {
    take_permissions(ledger, file);
    ledger->lock = file;
  } else {
    close(file);
  }
  errno = error;
  return taken;
}

int lock_take(struct ledger *ledger, int writes) {
  if (ledger->error) return 0;
  if (ledger->lock >= 0 || ledger->file || ledger_is_memory(ledger)) return 1;
  char *name = name_of(ledger);
  if (!name) return ledger_fail(ledger, "out of memory");
  wait_start(ledger);
  int taken, calls = 0;
  while ((taken = attempt(ledger, name, writes)) == 0 && wait_moment(ledger, calls)) calls++;
  if (taken < 0)
    ledger_fail(ledger, "privacy ledger '%s': cannot lock '%s': %s (%s)", ledger->path, name,
                strerror(errno),
                errno == ENOSPC   ? "free some space"
                : errno == EEXIST ? "move this file away: it is not a lock"
                                  : "put it where files can be locked");
  if (taken == 0)
    ledger_fail(ledger, "privacy ledger '%s': locked (another connection holds it)", ledger->path);
  if (ledger->lock >= 0) {
    ledger->lock_name = name;
  } else {
    sqlite3_free(name);
  }
  return taken > 0;
}

/* After a fork() the lock is the parent's; the child closes its descriptor. */
void lock_drop(struct ledger *ledger) {
  if (ledger->lock < 0) return;
  if (process_is_same(&ledger->process)) {
    if (has_name(ledger->lock, ledger->lock_name)) unlink(ledger->lock_name);
    flock(ledger->lock, LOCK_UN);
  }
  close(ledger->lock);
  sqlite3_free(ledger->lock_name);
  ledger->lock = -1;
  ledger->lock_name = 0;
}
