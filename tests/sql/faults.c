/*
** Fails SQLite's n-th allocation, once or from then on, for n = 1, 2, ... until a statement runs
** without meeting it: faults MODE SQL EXACT CHARGES. MODE is "once" or "on". EXACT is the true answer of
** SQL (the tier's noise is tiny), or "never" where SQL must always fail; CHARGES is how many rows
** dp_charge has after a success (2 before). After every run:
**   no answer that is not the true one, none without a charge, books that verify, no memory left over.
** Prints the number of failures that were survived.
*/
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sqlite3_diffuse_init(sqlite3 *, char **, const void *);

static sqlite3_mem_methods system_methods;
static long countdown; /* allocations until one fails; 0: none will */
static int failing_on, failed;

static int fails(void) {
  if (countdown == 0 || --countdown > 0) return 0;
  failed = 1;
  if (failing_on) countdown = 1;
  return 1;
}

static void *failing_malloc(int size) {
  return fails() ? 0 : system_methods.xMalloc(size);
}

static void *failing_realloc(void *memory, int size) {
  return fails() ? 0 : system_methods.xRealloc(memory, size);
}

static int text_of(void *text, int columns, char **values, char **names) {
  (void)columns;
  (void)names;
  sqlite3_snprintf(200, text, "%s", values[0] ? values[0] : "NULL");
  return 0;
}

static int get(sqlite3 *db, const char *sql, char text[200]) {
  text[0] = 0;
  return sqlite3_exec(db, sql, text_of, text, 0);
}

static void check(int condition, long n, const char *what, const char *text) {
  if (condition) return;
  printf("failure %ld: %s: %s\n", n, what, text);
  exit(1);
}

/* One run with the n-th allocation failing; returns whether it was met. */
static int run(long n, const char *sql, const char *exact, int charges) {
  char answer[200], text[200];
  sqlite3 *db;
  sqlite3_initialize();
  sqlite3_open(":memory:", &db);
  sqlite3_diffuse_init(db, 0, 0);
  check(get(db,
            "CREATE TABLE t(u, x); INSERT INTO t VALUES (1, 1), (1, 2), (2, 3), (3, 4);"
            "SELECT dp_init(); SELECT dp_tier('a', 1e6, 1e9, 1e-6);"
            "SELECT dp_tier('b', 5e5, 1e9, 1e-6); SELECT dp_tier('c', 2e5, 1e9, 1e-6);"
            "SELECT dp_sum('b', x, 100, u, 'old') FROM t",
            text) == SQLITE_OK,
        n, "set up", sqlite3_errmsg(db));
  failed = 0;
  countdown = n;
  int rc = get(db, sql, answer);
  countdown = 0;
  if (rc == SQLITE_OK) {
    check(strcmp(exact, "never") != 0, n, "succeeded", answer);
    check(fabs(atof(answer) - atof(exact)) < 2, n, "wrong answer", answer);
    get(db, "SELECT count(*) FROM dp_charge", text);
    check(atoi(text) == charges, n, "charges", text);
  }
  get(db, "SELECT dp_verify()", text);
  check(strcmp(text, "ok") == 0, n, "books", text[0] ? text : sqlite3_errmsg(db));
  check(sqlite3_close(db) == SQLITE_OK, n, "close", "");
  check(sqlite3_memory_used() == 0, n, "memory left over", sql);
  sqlite3_shutdown();
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  failing_on = strcmp(argv[1], "on") == 0;
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_methods);
  sqlite3_mem_methods methods = system_methods;
  methods.xMalloc = failing_malloc;
  methods.xRealloc = failing_realloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
  sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1);
  long n = 1, survived = 0;
  while (run(n, argv[2], argv[3], atoi(argv[4]))) {
    n += 1 + n / 100; /* a long statement is sampled in its later part */
    survived++;
  }
  printf("%ld\n", survived);
  return 0;
}
