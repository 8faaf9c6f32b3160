/* host_checks.c: whether the host's connection reads for a question as a connection of SQLite alone
** would: with SQLite's own functions and collations, columns that no authorizer replaces with NULL,
** and generated columns that no row can make fail. A question is refused otherwise. Beside
** evaluator.c, it is the only file that reads EXPLAIN.
** Tests: tests/query/test_question_dialect.py, tests/query/test_question_rules.py,
** tests/query/test_authorizers.py */
#include <string.h>

#include "query/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- functions ------------------------------------------------------------------------------- */

int own_functions_check(sqlite3 *db, const struct allowed_functions *called, struct error *error) {
  struct allowed_functions functions;
  if (allowed_functions_read(&functions, db) != SQLITE_OK)
    return error_set(error, "cannot read the list of functions: %s", sqlite3_errmsg(db));
  const char *replaced = functions_replaced(called, &functions);
  /* Advice: PRAGMA case_sensitive_like replaces like(), too. Ask on a connection that has SQLite's
     own functions. */
  return !replaced ||
         error_set(error,
                   "the application or a PRAGMA has replaced SQLite's function %s(), so a question "
                   "would give something else than this SELECT (use a connection without it)",
                   replaced);
}

/* ---- collations ------------------------------------------------------------------------------ */

/* SQLite does not tell whose function a collation is. So the check compares pairs of texts: all
** visible ASCII characters with the other case and with the next character, and these, which the
** collations of languages treat in another way (umlauts, accents, numbers, hyphens, spaces). */
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
  return sqlite3_stricmp(one, other);
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

/* Returns 1 if the collation of the statement agrees about two texts, 0 if not, -1 on an error. In
** a database in UTF-16, BINARY orders other letters than ASCII in another way. */
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
  return check(db, "BINARY", order_binary, error) && check(db, "NOCASE", order_nocase, error) &&
         check(db, "RTRIM", order_rtrim, error);
}

/* ---- columns that are shown ------------------------------------------------------------------ */

static sqlite3_stmt *explained(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  char *text = sqlite3_mprintf("EXPLAIN %s", sql);
  if (text) sqlite3_prepare_v2(db, text, -1, &row, 0);
  sqlite3_free(text);
  if (!row) interrupt_pass_on(db);
  return row;
}

/* Compares two rows of EXPLAIN: everything but the comments and the fifth number, which tells of
** the names in the text. Nothing of SQLite's instructions is known here. */
static int is_same_row(sqlite3_stmt *one, sqlite3_stmt *other) {
  for (int i = 0; i < 5; i++) {
    const char *a = (const char *)sqlite3_column_text(one, i);
    const char *b = (const char *)sqlite3_column_text(other, i);
    if (!a || !b || strcmp(a, b) != 0) return 0;
  }
  return 1;
}

int column_is_shown(sqlite3 *db, const char *select, const char *nothing) {
  sqlite3_stmt *one = explained(db, select), *other = explained(db, nothing);
  int rc = SQLITE_ROW, same = 1;
  while (one && other && same && rc == SQLITE_ROW) {
    rc = sqlite3_step(one);
    same = sqlite3_step(other) == rc && (rc != SQLITE_ROW || is_same_row(one, other));
  }
  int shown = one && other && !same && (rc == SQLITE_ROW || rc == SQLITE_DONE);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) interrupt_pass_on(db);
  sqlite3_finalize(one); /* the errors are in `shown` */
  sqlite3_finalize(other);
  return shown;
}

/* ---- the columns of a question --------------------------------------------------------------- */

/* Returns whether the question reads column `column` of table `at` of the route. */
static int is_read(const struct route *route, const unsigned char *used, int at, int column) {
  const struct table_facts *facts = &route->tables[at];
  int is_last = at == route->count - 1;
  return (at == 0 && used[column]) || (at > 0 && column == facts->unique) ||
         (is_last ? column == route->unit : column == route->links[at]);
}

static int check_shown(sqlite3 *db, const struct table_facts *facts, const char *column,
                       struct error *error) {
  char *select = sqlite3_mprintf("SELECT \"%w\" FROM main.\"%w\" NOT INDEXED", column, facts->name);
  char *nothing = sqlite3_mprintf("SELECT NULL FROM main.\"%w\" NOT INDEXED", facts->name);
  int going = 1;
  if (!select || !nothing) {
    going = error_set_memory(error);
  } else if (!column_is_shown(db, select, nothing)) {
    going = error_set(error,
                      "an authorizer of the host hides column '%s' of table '%s' (let the "
                      "extension read it)",
                      column, facts->name);
  }
  sqlite3_free(select);
  sqlite3_free(nothing);
  return going;
}

/* Checks a column that SQLite computes when it is read. */
static int check_generated(sqlite3 *db, const struct table_facts *facts, int column,
                           struct error *error) {
  struct allowed_functions functions;
  char *sql;
  int going = schema_text(db, "table", facts->name, &sql, error);
  if (going && !(sql && allowed_functions_read(&functions, db) == SQLITE_OK &&
                 generated_column_is_safe(sql, column, &functions)))
    going = error_set(error,
                      "column '%s' of table '%s' is generated when it is read, and this may fail "
                      "for one row (make it STORED, or leave it out)",
                      facts->columns[column].name, facts->name);
  sqlite3_free(sql);
  return going;
}

int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error) {
  int going = 1;
  for (int at = 0; at < route->count && going; at++) {
    const struct table_facts *facts = &route->tables[at];
    for (int i = 0; i < facts->count && going; i++) {
      if (!is_read(route, used, at, i)) continue;
      going = check_shown(db, facts, facts->columns[i].name, error) &&
              (!facts->columns[i].is_virtual || check_generated(db, facts, i, error));
    }
    /* The rows of a unit come in the order of the rowid. */
    if (going && at == 0 && facts->rowid) going = check_shown(db, facts, facts->rowid, error);
  }
  return going;
}
