/* private_connection.c: see private_connection.h.
** Tests: tests/query/test_question_limits.py, tests/query/test_question_rules.py */
#include "query/private_connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/own_connection.h"

SQLITE_EXTENSION_INIT3

/* ---- the file of a connection, once more ----------------------------------------------------- */

/* Appends a text in which only letters, digits and a few signs stand for themselves. */
static void append_encoded(sqlite3_str *uri, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._~-";
  for (; *text; text++) {
    if (strchr(plain, *text)) {
      sqlite3_str_appendchar(uri, 1, *text);
    } else {
      sqlite3_str_appendf(uri, "%%%02x", (unsigned char)*text);
    }
  }
}

/* Returns a URI with the parameters of `path`, a name that sqlite3_db_filename() returned. The VFS
** and the flags of sqlite3_open_v2() take the place of three of the parameters. */
static char *uri_of(const char *path) {
  sqlite3_str *uri = sqlite3_str_new(0);
  const char *key;
  char sign = '?';
  sqlite3_str_appendall(uri, *path == '/' ? "file:" : "file:/");
  append_encoded(uri, path);
  for (int i = 0; (key = sqlite3_uri_key(path, i)) != 0; i++) {
    if (strcmp(key, "mode") == 0 || strcmp(key, "cache") == 0 || strcmp(key, "vfs") == 0) continue;
    sqlite3_str_appendchar(uri, 1, sign);
    append_encoded(uri, key);
    sqlite3_str_appendchar(uri, 1, '=');
    append_encoded(uri, sqlite3_uri_parameter(path, key));
    sign = '&';
  }
  return sqlite3_str_finish(uri);
}

int private_connection_open(sqlite3 **opened, sqlite3 *db, int flags, struct error *error) {
  sqlite3_vfs *vfs = 0;
  const char *path = sqlite3_db_filename(db, "main");
  *opened = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs)
    return error_set(error, "cannot open the database again: its VFS is unknown");
  char *uri = uri_of(path);
  if (!uri) return error_set_memory(error);
  flags |= SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI;
  if (own_connection_open(opened, uri, flags, vfs->zName) != SQLITE_OK) {
    error_set(error, "cannot open the database again: %s",
              *opened ? sqlite3_errmsg(*opened) : "out of memory");
    sqlite3_close_v2(*opened);
    *opened = 0;
  } else {
    int trusts = 0;
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1, &trusts);
    sqlite3_db_config(*opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, trusts, (int *)0);
  }
  sqlite3_free(uri);
  return *opened != 0;
}

/* ---- files of SQLite's sorters and temporary tables ------------------------------------------ */

#define BLOCK 65536

/* A file in memory. A budget counts its bytes together with other memory. */
struct temporary_file {
  sqlite3_file base;
  struct memory_budget *budget; /* outlives the file */
  unsigned char **blocks;
  size_t count, room; /* numbers of blocks */
  sqlite3_int64 size;
};

int memory_budget_take(struct memory_budget *budget, double bytes) {
  budget->used += bytes;
  if (budget->used > budget->most) budget->is_exceeded = 1;
  return !budget->is_exceeded;
}

/* Frees the blocks from number `count` on. */
static void cut(struct temporary_file *file, size_t count) {
  while (file->count > count) {
    sqlite3_free(file->blocks[--file->count]);
    file->budget->used -= BLOCK;
  }
}

static int close_file(sqlite3_file *base) {
  struct temporary_file *file = (struct temporary_file *)base;
  cut(file, 0);
  free(file->blocks);
  return SQLITE_OK;
}

/* Copies bytes from or to the blocks, which must exist. */
static void copy(const struct temporary_file *file, char *bytes, int count, sqlite3_int64 offset,
                 int is_write) {
  while (count > 0) {
    size_t place = (size_t)(offset % BLOCK), size = BLOCK - place;
    unsigned char *block = file->blocks[offset / BLOCK] + place;
    if (size > (size_t)count) size = (size_t)count;
    if (is_write) {
      memcpy(block, bytes, size);
    } else {
      memcpy(bytes, block, size);
    }
    bytes += size;
    offset += (sqlite3_int64)size;
    count -= (int)size;
  }
}

static int read_file(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
  const struct temporary_file *file = (struct temporary_file *)base;
  sqlite3_int64 left = offset < file->size ? file->size - offset : 0;
  int have = left < count ? (int)left : count;
  copy(file, bytes, have, offset, 0);
  memset((char *)bytes + have, 0, (size_t)(count - have));
  return have == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int add_block(struct temporary_file *file) {
  if (!memory_budget_take(file->budget, BLOCK)) {
    file->budget->used -= BLOCK;
    return SQLITE_FULL;
  }
  if (file->count == file->room) {
    size_t room = file->room * 2 + 16;
    unsigned char **blocks = realloc(file->blocks, sizeof *blocks * room);
    if (!blocks) return SQLITE_IOERR_NOMEM;
    file->blocks = blocks;
    file->room = room;
  }
  unsigned char *block = sqlite3_malloc(BLOCK); /* it counts for SQLite's hard heap limit */
  if (!block) return SQLITE_IOERR_NOMEM;
  memset(block, 0, BLOCK);
  file->blocks[file->count++] = block;
  return SQLITE_OK;
}

static int write_file(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
  struct temporary_file *file = (struct temporary_file *)base;
  int rc = SQLITE_OK;
  while (rc == SQLITE_OK && (sqlite3_int64)file->count * BLOCK < offset + count)
    rc = add_block(file);
  if (rc != SQLITE_OK) return rc;
  copy(file, (char *)bytes, count, offset, 1);
  if (offset + count > file->size) file->size = offset + count;
  return SQLITE_OK;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
  struct temporary_file *file = (struct temporary_file *)base;
  if (size < file->size) file->size = size;
  cut(file, (size_t)((file->size + BLOCK - 1) / BLOCK));
  size_t end = (size_t)(file->size % BLOCK); /* bytes after the end are zeros */
  if (end) memset(file->blocks[file->count - 1] + end, 0, BLOCK - end);
  return SQLITE_OK;
}

static int size_of_file(sqlite3_file *base, sqlite3_int64 *size) {
  *size = ((struct temporary_file *)base)->size;
  return SQLITE_OK;
}

/* For xSync, xLock and xUnlock. */
static int nothing(sqlite3_file *base, int flags) {
  (void)base, (void)flags;
  return SQLITE_OK;
}

static int is_reserved(sqlite3_file *base, int *out) {
  (void)base;
  *out = 0;
  return SQLITE_OK;
}

static int control(sqlite3_file *base, int operation, void *argument) {
  (void)base, (void)operation, (void)argument;
  return SQLITE_NOTFOUND;
}

static int sector(sqlite3_file *base) {
  (void)base;
  return 4096;
}

static int characteristics(sqlite3_file *base) {
  (void)base;
  return 0;
}

/* Opens an empty file. A write that exceeds the budget fails with SQLITE_FULL. */
static void temporary_file_open(struct temporary_file *file, struct memory_budget *budget) {
  static const sqlite3_io_methods methods = {.iVersion = 1,
                                             .xClose = close_file,
                                             .xRead = read_file,
                                             .xWrite = write_file,
                                             .xTruncate = truncate_file,
                                             .xSync = nothing,
                                             .xFileSize = size_of_file,
                                             .xLock = nothing,
                                             .xUnlock = nothing,
                                             .xCheckReservedLock = is_reserved,
                                             .xFileControl = control,
                                             .xSectorSize = sector,
                                             .xDeviceCharacteristics = characteristics};
  *file = (struct temporary_file){.base = {&methods}, .budget = budget};
}

/* ---- the file system ------------------------------------------------------------------------- */

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
