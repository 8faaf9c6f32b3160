/* host.c: runs SQL with the extension on platforms for which this machine has no other host: host
** DATABASE EXTENSION < statements. Each line of the input is a statement. The program prints its
** rows with a bar between columns, or "error: " and the message. SQLite is compiled in. */
#include <stdio.h>

#include "sqlite3.h"

static int print_row(void *unused, int count, char **values, char **names) {
  (void)unused;
  (void)names;
  for (int i = 0; i < count; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "");
  printf("\n");
  return 0;
}

int main(int count, char **arguments) {
  static char line[1 << 20];
  sqlite3 *db;
  char *error = 0;
  if (count != 3 || sqlite3_open(arguments[1], &db) != SQLITE_OK) return 2;
  sqlite3_enable_load_extension(db, 1);
  if (sqlite3_load_extension(db, arguments[2], 0, &error) != SQLITE_OK) {
    printf("error: %s\n", error);
    return 1;
  }
  while (fgets(line, sizeof line, stdin)) {
    if (sqlite3_exec(db, line, print_row, 0, &error) == SQLITE_OK) continue;
    printf("error: %s\n", error);
    sqlite3_free(error);
  }
  return sqlite3_close(db) != SQLITE_OK;
}
