/* planning.c: pure functions of public parameters. */
#include "functions/functions.h"

SQLITE_EXTENSION_INIT3

int planning_register(sqlite3 *db) {
  (void)db;
  return SQLITE_OK;
}
