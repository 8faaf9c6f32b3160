/* program.c: a program that links the extension. It prints a noisy count of 1,000 rows. */
#include <stdio.h>

#include "diffuse.h"

static int print_row(void *unused, int count, char **values, char **names) {
  (void)unused;
  (void)count;
  (void)names;
  printf("%s\n", values[0]);
  return 0;
}

int main(void) {
  sqlite3 *db;
  char *error = 0;
  sqlite3_auto_extension((void (*)(void))sqlite3_diffuse_init);
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 2;
  int rc = sqlite3_exec(db,
                        "SELECT dp_init();"
                        "SELECT dp_tier('t', 1.0, 500.0, 1e-6);"
                        "CREATE TABLE t(i); SELECT dp_protect('t', 'i');"
                        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                        " LIMIT 1000) INSERT INTO t SELECT i FROM n;"
                        "SELECT dp_count('t', i, 1, 'n') FROM t;",
                        print_row, 0, &error);
  if (error) printf("error: %s\n", error);
  return rc != SQLITE_OK || sqlite3_close(db) != SQLITE_OK;
}
