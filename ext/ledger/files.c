/*
** files.c: recognises the files of a database, which can never be a ledger.
** Tests: tests/ledger/test_files.py
*/
#include "ledger/files.h"

#include <sqlite3ext.h>
#include <string.h>

#include "os/file.h"

SQLITE_EXTENSION_INIT3

/*
** Returns whether two names mean the same file. If the file does not exist, the function compares
** its folder and its name.
*/
static int same_place(const char *a, const char *b) {
  const char *name_a = path_name(a), *name_b = path_name(b);
  if (strcmp(a, b) == 0 || file_same(a, b)) return 1;
  if (name_a == a || name_b == b || !path_names_match(name_a, name_b)) return 0;
  char *folder_a = sqlite3_mprintf("%.*s", (int)(name_a - a), a);
  char *folder_b = sqlite3_mprintf("%.*s", (int)(name_b - b), b);
  /* If memory runs out, assume the same file. */
  int same = !folder_a || !folder_b || file_same(folder_a, folder_b);
  sqlite3_free(folder_a);
  sqlite3_free(folder_b);
  return same;
}

int file_is_hosts(const char *path, const char *database) {
  static const char *const suffixes[] = {"", "-journal", "-wal", "-shm", "-lock"};
  int same = 0;
  for (int i = 0; i < 5 && !same; i++) {
    char *of_host = sqlite3_mprintf("%s%s", database, suffixes[i]);
    char *of_ledger = sqlite3_mprintf("%s%s", path, suffixes[i]);
    same = !of_host || !of_ledger || same_place(path, of_host) || same_place(of_ledger, database);
    sqlite3_free(of_host);
    sqlite3_free(of_ledger);
  }
  return same;
}
