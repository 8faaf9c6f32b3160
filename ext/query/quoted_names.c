/*
** quoted_names.c: see quoted_names.h.
**
** Compiling the statement again with SQLITE_DBCONFIG_DQS_DML off would show such a name, but a
** change of this setting ends running statements. So the check looks for a name in double quotes
** that the program of the statement has as a text, while the statement has no such text in single
** quotes.
*/
#include "query/quoted_names.h"

#include <string.h>

#include "base/sql_text.h"
#include "query/program.h"

SQLITE_EXTENSION_INIT3

/* Returns the place after the text or name in quotes that starts at `at`. */
static const char *end_of(const char *at) {
  char quote = *at++;
  while (*at && (*at != quote || at[1] == quote)) at += 1 + (*at == quote);
  return at + (*at != 0);
}

/* Returns whether the quoted text at `at` is `text`, with its quotes doubled. */
static int is_quoted(const char *at, const char *text) {
  char quote = *at++;
  for (; *text; text++, at++) {
    if (*at != *text) return 0;
    if (*text == quote && *++at != quote) return 0;
  }
  return *at == quote && at[1] != quote;
}

/* Returns whether the statement has `text` between these quotes. */
static int has_quoted(const char *sql, const char *text, char quote) {
  while (*sql) {
    const char *next = sql_skip_space(sql);
    if (next == sql && (*sql == '\'' || *sql == '"')) {
      if (*sql == quote && is_quoted(sql, text)) return 1;
      next = end_of(sql);
    }
    sql = next > sql ? next : sql + 1;
  }
  return 0;
}

static int check_names(sqlite3 *db, const char *sql, struct error *error) {
  struct program program;
  int sound = 1;
  if (!sql || !strchr(sql, '"')) return 1;
  program_read(&program, db, sql);
  for (int i = 0; i < program.count && sound; i++) {
    const char *text = program.list[i].p4;
    if (!text || strcmp(program.list[i].name, "String8") != 0) continue;
    if (has_quoted(sql, text, '"') && !has_quoted(sql, text, '\''))
      sound = error_set(error,
                        "there is no column \"%s\", and SQLite takes the name for a text (correct "
                        "it, or write a text in single quotes)",
                        text);
  }
  program_clear(&program);
  return sound;
}

int quoted_names_check(sqlite3 *db, struct error *error) {
  int sound = 1;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s && sound; s = sqlite3_next_stmt(db, s))
    if (sqlite3_stmt_busy(s)) sound = check_names(db, sqlite3_sql(s), error);
  return sound;
}
