/* private_memory.c: see private_memory.h. Tests: tests/query/test_question_limits.py */
#include "query/private_memory.h"

#include <string.h>

#include "base/own_connection.h"

SQLITE_EXTENSION_INIT3

/* Opens the files without a name, which SQLite deletes when it closes them. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  file->pMethods = 0;
  if (name) return SQLITE_CANTOPEN;
  temporary_file_open((struct temporary_file *)file,
                      &((struct private_memory *)vfs->pAppData)->budget);
  if (out) *out = flags;
  return SQLITE_OK;
}

static int no_delete(sqlite3_vfs *vfs, const char *name, int sync) {
  (void)vfs, (void)name, (void)sync;
  return SQLITE_IOERR_DELETE;
}

static int no_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  (void)vfs, (void)name, (void)flags;
  *result = 0;
  return SQLITE_OK;
}

static int no_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
  (void)vfs;
  sqlite3_snprintf(size, path, "%s", name);
  return SQLITE_OK;
}

static int no_randomness(sqlite3_vfs *vfs, int size, char *bytes) {
  (void)vfs;
  memset(bytes, 0, (size_t)size);
  return size;
}

static int no_sleep(sqlite3_vfs *vfs, int microseconds) {
  (void)vfs;
  return microseconds;
}

static int give_moment(sqlite3_vfs *vfs, sqlite3_int64 *now) {
  *now = ((struct private_memory *)vfs->pAppData)->moment;
  return SQLITE_OK;
}

static int give_days(sqlite3_vfs *vfs, double *now) {
  *now = (double)((struct private_memory *)vfs->pAppData)->moment / 86400000.0;
  return SQLITE_OK;
}

static int no_error(sqlite3_vfs *vfs, int size, char *text) {
  (void)vfs, (void)size, (void)text;
  return 0;
}

/* Reads the time from the host's file system. */
static int read_moment(sqlite3_int64 *moment) {
  sqlite3_vfs *vfs = sqlite3_vfs_find(0);
  double days = 0;
  if (!vfs) return 0;
  if (vfs->iVersion >= 2 && vfs->xCurrentTimeInt64)
    return vfs->xCurrentTimeInt64(vfs, moment) == SQLITE_OK;
  if (!vfs->xCurrentTime || vfs->xCurrentTime(vfs, &days) != SQLITE_OK) return 0;
  *moment = (sqlite3_int64)(days * 86400000.0);
  return 1;
}

int private_memory_open(struct private_memory *memory, sqlite3 **db, struct error *error) {
  int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY;
  *db = 0;
  if (!read_moment(&memory->moment)) return error_set(error, "the system gave no time");
  memory->vfs = (sqlite3_vfs){.iVersion = 2,
                              .szOsFile = sizeof(struct temporary_file),
                              .mxPathname = 512,
                              .zName = memory->name,
                              .pAppData = memory,
                              .xOpen = open_file,
                              .xDelete = no_delete,
                              .xAccess = no_access,
                              .xFullPathname = no_path,
                              .xRandomness = no_randomness,
                              .xSleep = no_sleep,
                              .xCurrentTime = give_days,
                              .xGetLastError = no_error,
                              .xCurrentTimeInt64 = give_moment};
  sqlite3_snprintf(sizeof memory->name, memory->name, "diffuse-%p", (void *)memory);
  int rc = sqlite3_vfs_register(&memory->vfs, 0);
  if (rc == SQLITE_OK) {
    rc = own_connection_open(db, ":memory:", flags, memory->name);
    sqlite3_vfs_unregister(&memory->vfs); /* the open connection keeps the VFS */
  }
  return rc == SQLITE_OK || error_set(error, "cannot open a connection in memory");
}
