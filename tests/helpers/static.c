/* A program that links SQLite and the extension, and makes a ledger and a release in memory. */
#include <sqlite3.h>
#include <stdio.h>

int sqlite3_diffuse_init(sqlite3 *, char **, const void *);

int main(void) {
  sqlite3 *db;
  char *error = 0;
  sqlite3_auto_extension((void (*)(void))sqlite3_diffuse_init);
  if (sqlite3_open(":memory:", &db)) return 1;
  if (sqlite3_exec(db,
                   "CREATE TABLE t(x, u); INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL);"
                   "SELECT dp_init(); SELECT dp_protect('t', 'u');"
                   "SELECT dp_tier('a', 0.02, 10, 1e-6); SELECT dp_tier('b', "
                   "0.01, 5, 1e-6);"
                   "SELECT dp_sum('a', x, 5, 'n') FROM t; SELECT dp_diffuse('n', 'b');"
                   "SELECT * FROM dp_value; SELECT dp_release('b', 'count', "
                   "'SELECT x FROM t', '{\"clip\":1}');"
                   "SELECT dp_sum('a', x, 5) FROM t;",
                   0, 0, &error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  if (sqlite3_close(db) != SQLITE_OK) return 2;
  puts("ok");
  return 0;
}
