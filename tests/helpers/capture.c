/* A stand-in for an old SQLite: hands the extension an API table whose version is 3.33.0. */
#include <dlfcn.h>
#include <sqlite3ext.h>
#include <stdlib.h>
SQLITE_EXTENSION_INIT1

static int old_version(void) {
  return 3033000;
}

int sqlite3_capture_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  static sqlite3_api_routines old;
  old = *api;
  old.libversion_number = old_version;
  void *library = dlopen(getenv("DIFFUSE"), RTLD_NOW);
  int (*init)(sqlite3 *, char **, const sqlite3_api_routines *) =
      (int (*)(sqlite3 *, char **, const sqlite3_api_routines *))dlsym(library,
                                                                       "sqlite3_diffuse_init");
  return init(db, error, &old);
}
