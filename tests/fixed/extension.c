/* extension.c: the extension with noise and a clock that are the same in every run, so that a test
** can compare the outputs of a document with the document.
**
** FIXED_SEED is the seed of the noise. FIXED_NOW is the time, in seconds since 1970. SQLite looks
** for this entry point before it looks for an entry point that is named after the file. */
#include <sqlite3ext.h>
#include <stdlib.h>

#include "noise.h"

SQLITE_EXTENSION_INIT3

int sqlite3_diffuse_init(sqlite3 *, char **, const sqlite3_api_routines *);

static int now(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds) {
  (void)vfs;
  const sqlite3_int64 epoch = 210866760000000; /* the Julian day of 1970-01-01, in milliseconds */
  *milliseconds = epoch + 1000 * strtoll(getenv("FIXED_NOW"), 0, 10);
  return SQLITE_OK;
}

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *db, char **error,
                                                                  const sqlite3_api_routines *api) {
  if (!getenv("FIXED_SEED") || !getenv("FIXED_NOW")) return SQLITE_MISUSE;
  fixed_noise = strtoull(getenv("FIXED_SEED"), 0, 10);
  int rc = sqlite3_diffuse_init(db, error, api);
  if (rc == SQLITE_OK) sqlite3_vfs_find(0)->xCurrentTimeInt64 = now;
  return rc;
}
