/*
** fuzz.h: what the fuzz targets share. A target is LLVMFuzzerTestOneInput(): libFuzzer calls it
** with bytes of its making (make fuzz), replay.c with the files of corpus/ (make test). It aborts
** when an invariant does not hold.
*/
#ifndef DIFFUSE_FUZZ_H
#define DIFFUSE_FUZZ_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sqlite3_diffuse_init(sqlite3 *, char **, const void *);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void expect(int holds, const char *what, const char *detail) {
  if (holds) return;
  fprintf(stderr, "does not hold: %s: %s\n", what, detail ? detail : "(null)");
  abort();
}

/* An in-memory database with the extension. */
static inline sqlite3 *fuzz_open(void) {
  sqlite3 *db;
  expect(sqlite3_open(":memory:", &db) == SQLITE_OK, "open", "");
  expect(sqlite3_diffuse_init(db, 0, 0) == SQLITE_OK, "load", "");
  return db;
}

static inline void must(sqlite3 *db, const char *sql) {
  expect(sqlite3_exec(db, sql, 0, 0, 0) == SQLITE_OK, sql, sqlite3_errmsg(db));
}

/* The first column of the first row, or null after an error (or for NULL); to be freed. */
static inline char *ask(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement = 0;
  char *answer = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    answer = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
  if (sqlite3_finalize(statement) != SQLITE_OK) {
    sqlite3_free(answer);
    answer = 0;
  }
  return answer;
}

static inline long ask_number(sqlite3 *db, const char *sql) {
  char *answer = ask(db, sql);
  expect(answer != 0, sql, sqlite3_errmsg(db));
  long number = atol(answer);
  sqlite3_free(answer);
  return number;
}

static inline void expect_sound(sqlite3 *db) {
  char *answer = ask(db, "SELECT dp_verify()");
  expect(answer && strcmp(answer, "ok") == 0, "dp_verify()", answer ? answer : sqlite3_errmsg(db));
  sqlite3_free(answer);
}

/* A database of people with a ledger that has room for many releases. */
static inline sqlite3 *fuzz_story(void) {
  sqlite3 *db = fuzz_open();
  must(db, "CREATE TABLE t(u, k, x, v);"
           "INSERT INTO t VALUES (1, 'a', 1, '[1,2]'), (1, 2, 2.5, x'0000803f00000040'),"
           " (2, NULL, '3', '[0,0]'), (NULL, x'00', NULL, 'x'), ('2', 'a', 1e300, NULL);"
           "SELECT dp_init('{\"unchecked\":true}');"
           "SELECT dp_tier('a', 1e-3, 10, 1e-5, 'rdp', 1e-6);"
           "SELECT dp_tier('b', 1e-4, 5, 1e-5, 'rdp', 1e-6);"
           "SELECT dp_tier('c', 1e-6, 1, 1e-5, 'gdp')");
  return db;
}

#endif
