/*
** json.c: owns the reading of JSON options, with SQLite's own parser on a private in-memory
** connection (the host's connection may have functions of that name, or an authorizer).
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ledger/internal.h"
#include "os/locale.h"

SQLITE_EXTENSION_INIT3

static int parser_open(struct ledger *ledger) {
  if (ledger->parser) return 1;
  if (sqlite3_open_v2(MEMORY_PATH, &ledger->parser,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX,
                      0) == SQLITE_OK)
    return 1;
  sqlite3_close(ledger->parser);
  ledger->parser = 0;
  return ledger_fail(ledger, "out of memory");
}

int json_present(struct ledger *ledger) {
  sqlite3_stmt *statement = 0;
  if (!parser_open(ledger)) return 0;
  int rc = sqlite3_prepare_v2(
      ledger->parser, "SELECT json_extract(value, '$') FROM json_each('[]')", -1, &statement, 0);
  sqlite3_finalize(statement); /* never stepped */
  return rc == SQLITE_OK || ledger_fail(ledger,
                                        "this SQLite was built without the JSON functions that "
                                        "the ledger needs (%s)",
                                        sqlite3_errmsg(ledger->parser));
}

/* Whether valid JSON has a zero byte: its escape, with a backslash that is not itself escaped. */
static int has_zero_byte(const char *json) {
  for (; *json; json++) {
    if (*json != '\\') continue;
    if (strncmp(json, "\\u0000", 6) == 0) return 1;
    json++;
  }
  return 0;
}

/* Whether the text is JSON of this type; json_each() itself would raise a less helpful error. */
static int is_json(struct ledger *ledger, const char *json, const char *wanted) {
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->parser, "SELECT json_valid(?1) AND json_type(?1) = ?2", -1,
                              &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, json, -1, SQLITE_TRANSIENT);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 2, wanted, -1, SQLITE_TRANSIENT);
  int is = rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0);
  sqlite3_finalize(row); /* json_valid() cannot fail but for want of memory */
  if (!is) return ledger_fail(ledger, "malformed JSON %s", wanted);
  /* SQLite's parser cuts a text there; a name must not become another one. */
  return !has_zero_byte(json) || ledger_fail(ledger, "a zero byte in a JSON %s", wanted);
}

/*
** Hands over one member. Its value is a copy: SQLite's own is unprotected, and may only be bound or
** copied.
*/
static int hand_over(struct ledger *ledger, sqlite3_stmt *row, const char *key,
                     ledger_take_member *take, void *context) {
  sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(row, 2));
  if (!value) return ledger_fail(ledger, "out of memory");
  int taken = take(context, key, (const char *)sqlite3_column_text(row, 1), value);
  sqlite3_value_free(value);
  return taken;
}

/* Hands over the members of a JSON value of one type. */
static int take_members(struct ledger *ledger, const char *json, const char *wanted,
                        ledger_take_member *take, void *context) {
  /* One row per member; the count says how often its key occurs. */
  static const char sql[] = "SELECT key, type, value, count(*) OVER (PARTITION BY key)"
                            " FROM json_each(?1) ORDER BY id";
  sqlite3_stmt *row = 0;
  ledger_clear(ledger);
  if (!json_present(ledger) || !is_json(ledger, json, wanted)) return 0;
  int rc = sqlite3_prepare_v2(ledger->parser, sql, -1, &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, json, -1, SQLITE_TRANSIENT);
  int going = rc == SQLITE_OK;
  while (going && interrupt_check(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(row, 0);
    if (!key || sqlite3_column_int(row, 3) > 1) {
      going = ledger_fail(ledger, "an option is given twice");
    } else if (sqlite3_column_type(row, 2) == SQLITE_FLOAT &&
               !isfinite(sqlite3_column_double(row, 2))) {
      going = ledger_fail(ledger, "an option is not a finite number");
    } else {
      going = hand_over(ledger, row, key, take, context);
    }
  }
  interrupt_end(ledger);
  if (going && rc != SQLITE_DONE)
    ledger_fail(ledger, "cannot read JSON: %s", sqlite3_errmsg(ledger->parser));
  sqlite3_finalize(row); /* its error, if any, has just been recorded */
  return going && !ledger->error;
}

/* SQLite before 3.43 may read the numbers of JSON with strtod(), which asks the locale. */
static int each_member(struct ledger *ledger, const char *json, const char *wanted,
                       ledger_take_member *take, void *context) {
  struct number_locale before = locale_plain();
  int taken = take_members(ledger, json, wanted, take, context);
  locale_restore(before);
  return taken;
}

int ledger_options(struct ledger *ledger, const char *json, ledger_take_member *take,
                   void *context) {
  return each_member(ledger, json, "object", take, context);
}

int ledger_elements(struct ledger *ledger, const char *json, ledger_take_member *take,
                    void *context) {
  return each_member(ledger, json, "array", take, context);
}

void ledger_append_number(sqlite3_str *json, double x) {
  char text[32];
  struct number_locale before = locale_plain();
  snprintf(text, sizeof text, "%.17g", x);
  locale_restore(before);
  sqlite3_str_appendall(json, text);
}

void ledger_append_string(sqlite3_str *json, const char *text) {
  sqlite3_str_appendchar(json, 1, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') sqlite3_str_appendchar(json, 1, '\\');
    if ((unsigned char)*text < 0x20) {
      sqlite3_str_appendf(json, "\\u%04x", *text);
    } else {
      sqlite3_str_appendchar(json, 1, *text);
    }
  }
  sqlite3_str_appendchar(json, 1, '"');
}
