/*
** schema.c: the tables of sql/ledger.sql. This file creates them, and compares an open ledger with
** them: its format number, and the text of every object.
** Tests: tests/ledger/test_columns.py, tests/ledger/test_ledger.py
*/
#include "ledger/schema.h"

#include <string.h>

#include "base/own_connection.h"
#include "ledger/connection.h"
#include "ledger/statements.h"
#include "ledger_sql.h"

SQLITE_EXTENSION_INIT3

int ledger_make_schema(struct ledger *ledger) {
  return sqlite3_exec(ledger->db, ledger_sql, 0, 0, 0) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

int ledger_check_format(struct ledger *ledger) {
  int format = ledger_format(ledger);
  if (format != LEDGER_FORMAT)
    ledger_fail(ledger,
                "the privacy ledger '%s' has format %d, and this version reads format "
                "%d (use the version of diffuse that wrote it)",
                ledger->path, format, LEDGER_FORMAT);
  return !error_is_set(ledger->error);
}

/* ---- comparing ------------------------------------------------------------------------------- */

#define OBJECTS                                                                                    \
  "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"                      \
  " AND substr(name, 1, 7) <> 'sqlite_' ORDER BY type, name"

/*
** Returns the next character of an SQL text that is neither white space nor part of a comment, or 0
** at the end.
*/
static char next_character(const char **sql, char *quote) {
  const char *at = *sql;
  while (!*quote && *at) {
    if (strchr(" \t\r\n", *at)) {
      at++;
    } else if (at[0] == '-' && at[1] == '-') {
      at += strcspn(at, "\n");
    } else {
      break;
    }
  }
  if (*quote) {
    if (*at == *quote) *quote = 0;
  } else if (*at == '\'' || *at == '"') {
    *quote = *at;
  }
  *sql = at + (*at != 0);
  return *at;
}

/* Returns whether two SQL texts are equal apart from comments and white space. */
static int same_sql(const char *a, const char *b) {
  char quote_a = 0, quote_b = 0, c;
  do {
    c = next_character(&a, &quote_a);
    if (c != next_character(&b, &quote_b)) return 0;
  } while (c);
  return 1;
}

static int same_object(struct ledger *ledger, sqlite3_stmt *a, sqlite3_stmt *b) {
  for (int i = 0; i < 3; i++) {
    if (strcmp(column_text(ledger, a, i), column_text(ledger, b, i)) != 0) return 0;
  }
  return same_sql(column_text(ledger, a, 3), column_text(ledger, b, 3));
}

/* Steps through both lists of objects and compares them. */
static int compare_objects(struct ledger *ledger, sqlite3_stmt *wanted, sqlite3_stmt *found) {
  for (;;) {
    int of_wanted = sqlite3_step(wanted), of_found = sqlite3_step(found);
    int more = of_wanted == SQLITE_ROW, is_there = of_found == SQLITE_ROW;
    if (!more && of_wanted != SQLITE_DONE) return ledger_fail(ledger, "out of memory");
    if (!is_there && of_found != SQLITE_DONE) return ledger_fail_sqlite(ledger);
    if (!more && !is_there) return 1;
    if (more && is_there && same_object(ledger, wanted, found)) continue;
    int order = !more ? 1 : !is_there ? -1 : 0;
    for (int i = 0; i < 2 && !order; i++)
      order = strcmp(column_text(ledger, wanted, i), column_text(ledger, found, i));
    const char *type = column_text(ledger, order < 0 ? wanted : found, 0);
    const char *name = column_text(ledger, order < 0 ? wanted : found, 1);
    if (order <= 0)
      return ledger_discrepancy(ledger, "schema: %s '%s' is %s", type, name,
                                order ? "missing" : "not that of the format");
    return ledger_discrepancy(ledger,
                              "schema: another program has put the %s '%s' into the ledger file "
                              "(drop it there, which loses no charge)",
                              type, name);
  }
}

int ledger_verify_schema(struct ledger *ledger) {
  sqlite3 *fresh = 0;
  sqlite3_stmt *wanted = 0, *found = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (error_is_set(ledger->error)) return 0;
  if (own_connection_open(&fresh, MEMORY_PATH, flags, 0) != SQLITE_OK ||
      sqlite3_exec(fresh, ledger_sql, 0, 0, 0) != SQLITE_OK ||
      sqlite3_prepare_v2(fresh, OBJECTS, -1, &wanted, 0) != SQLITE_OK) {
    ledger_fail(ledger, "out of memory");
  } else if (sqlite3_prepare_v2(ledger->db, OBJECTS, -1, &found, 0) != SQLITE_OK) {
    ledger_fail_sqlite(ledger);
  } else {
    compare_objects(ledger, wanted, found);
  }
  sqlite3_finalize(found);
  sqlite3_finalize(wanted);
  sqlite3_close(fresh);
  return !error_is_set(ledger->error);
}
