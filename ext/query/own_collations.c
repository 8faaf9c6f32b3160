/*
** own_collations.c: see own_collations.h.
**
** SQLite does not tell whose function a collation is. So the check compares pairs of texts: all
** visible ASCII characters with the other case and with the next character, and texts that the
** collations of languages treat in another way (umlauts, accents, numbers, hyphens, spaces).
** Tests: tests/query/test_question_rules.py, tests/query/test_question_dialect.py
*/
#include "query/own_collations.h"

#include <string.h>

SQLITE_EXTENSION_INIT3

static const char *const others[][2] = {{"\xc3\xa4", "\xc3\x84"},
                                        {"\xc3\xa9", "e"},
                                        {"\xc3\x9f", "ss"},
                                        {"\xc4\xb1", "I"},
                                        {"\xef\xbd\x81", "a"},
                                        {"a", "a "},
                                        {"a", "a\t"},
                                        {"a", " a"},
                                        {"a", "a\xe2\x80\x8b"},
                                        {"9", "10"},
                                        {"a-b", "ab"},
                                        {"Z", "a"},
                                        {"a", "B"},
                                        {"", " "},
                                        {"a", "aa"}};

static char folded(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static size_t trimmed(const char *text) {
  size_t length = strlen(text);
  while (length && text[length - 1] == ' ') length--;
  return length;
}

/* The order of two texts under a collation of SQLite: negative, 0 or positive. */
static int order_binary(const char *one, const char *other) {
  return strcmp(one, other);
}

static int order_nocase(const char *one, const char *other) {
  while (*one && folded(*one) == folded(*other)) one++, other++;
  return (unsigned char)folded(*one) - (unsigned char)folded(*other);
}

static int order_rtrim(const char *one, const char *other) {
  size_t size = trimmed(one), length = trimmed(other);
  int order = memcmp(one, other, size < length ? size : length);
  return order ? order : (size > length) - (size < length);
}

static int is_ascii(const char *text) {
  while (*text && (unsigned char)*text < 128) text++;
  return !*text;
}

/*
** Returns 1 if the collation of the statement agrees about two texts, 0 if not, -1 on an error. In
** a database in UTF-16, BINARY orders other letters than ASCII in another way.
*/
static int agrees(sqlite3_stmt *compare, const char *one, const char *other, int order) {
  sqlite3_bind_text(compare, 1, one, -1, SQLITE_STATIC);
  sqlite3_bind_text(compare, 2, other, -1, SQLITE_STATIC);
  int rc = sqlite3_step(compare), found = rc == SQLITE_ROW ? sqlite3_column_int(compare, 0) : 0;
  sqlite3_reset(compare); /* the error is in `rc` */
  if (rc != SQLITE_ROW) return -1;
  int has_order = is_ascii(one) && is_ascii(other);
  return has_order ? found == (order > 0) - (order < 0) : !found == !order;
}

static int check(sqlite3 *db, const char *name, int (*order)(const char *, const char *),
                 struct error *error) {
  sqlite3_stmt *compare = 0;
  char *sql = sqlite3_mprintf("SELECT (?1 > ?2 COLLATE %s) - (?1 < ?2 COLLATE %s)", name, name);
  int agreed = sql && sqlite3_prepare_v2(db, sql, -1, &compare, 0) == SQLITE_OK && compare ? 1 : -1;
  for (size_t i = 0; i < sizeof others / sizeof *others && agreed == 1; i++)
    agreed = agrees(compare, others[i][0], others[i][1], order(others[i][0], others[i][1]));
  for (char c = '!'; c < '~' && agreed == 1; c++) {
    char one[] = {c, 0}, case_of[] = {(char)(c ^ 32), 0}, next[] = {(char)(c + 1), 0};
    agreed = agrees(compare, one, case_of, order(one, case_of));
    if (agreed == 1) agreed = agrees(compare, one, next, order(one, next));
  }
  if (agreed < 0) error_set(error, "cannot compare texts: %s", sqlite3_errmsg(db));
  if (agreed == 0)
    error_set(error,
              "the application has replaced SQLite's collation %s, so one person could count as "
              "two, or a comparison mean something else (use a connection without it)",
              name);
  sqlite3_finalize(compare); /* its error has been reported */
  sqlite3_free(sql);
  return agreed == 1;
}

int own_collations_check(sqlite3 *db, struct error *error) {
  return check(db, "BINARY", order_binary, error) &&
         check(db, "NOCASE", order_nocase, error) && check(db, "RTRIM", order_rtrim, error);
}
