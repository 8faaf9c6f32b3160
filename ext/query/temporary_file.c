/* temporary_file.c: see temporary_file.h. Tests: tests/query/test_question_rules.py */
#include "query/temporary_file.h"

#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#define BLOCK 65536

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

void temporary_file_open(struct temporary_file *file, struct memory_budget *budget) {
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
