/*
** json.c: owns the reading of JSON options, with SQLite's own parser on a private in-memory
** connection (the host's connection may have functions of that name, or an authorizer).
*/
#include <math.h>

#include "ledger/internal.h"

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

int ledger_options(struct ledger *ledger, const char *json,
                int (*take)(void *context, const char *key, const char *type, sqlite3_value *value),
                void *context) {
  /* One row per member; `again` counts how often its key occurs. json_valid comes first because
  ** json_each raises its own, less helpful error. */
  static const char sql[] =
      "SELECT key, type, value, (SELECT count(*) FROM json_each(?1) other WHERE other.key = each.key)"
      " FROM json_each(CASE WHEN json_valid(?1) AND json_type(?1) = 'object' THEN ?1 END) each";
  sqlite3_stmt *row = 0;
  ledger_clear(ledger);
  if (!parser_open(ledger)) return 0;
  int rc = sqlite3_prepare_v2(ledger->parser, "SELECT json_valid(?1) AND json_type(?1) = 'object'",
                              -1, &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, json, -1, SQLITE_TRANSIENT);
  int object = rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0);
  sqlite3_finalize(row);
  if (!object) return ledger_fail(ledger, "malformed JSON object %s", json);
  rc = sqlite3_prepare_v2(ledger->parser, sql, -1, &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, json, -1, SQLITE_TRANSIENT);
  int going = rc == SQLITE_OK;
  while (going && (rc = sqlite3_step(row)) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(row, 0);
    if (!key || sqlite3_column_int(row, 3) > 1) {
      going = ledger_fail(ledger, "option '%s' is given twice", key ? key : "");
    } else if (sqlite3_column_type(row, 2) == SQLITE_FLOAT &&
               !isfinite(sqlite3_column_double(row, 2))) {
      going = ledger_fail(ledger, "option '%s' is not a finite number", key);
    } else {
      going = take(context, key, (const char *)sqlite3_column_text(row, 1),
                   sqlite3_column_value(row, 2));
    }
  }
  if (going && rc != SQLITE_DONE)
    ledger_fail(ledger, "cannot read JSON: %s", sqlite3_errmsg(ledger->parser));
  sqlite3_finalize(row); /* its error, if any, has just been recorded */
  return going && !ledger->error;
}
