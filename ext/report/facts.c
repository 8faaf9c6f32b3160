/* facts.c: the facts of an audience (report.h). Tests: tests/report/test_report.py */
#include "base/own_connection.h"
#include "os/file.h"
#include "report/page.h"
#include "report/report.h"

SQLITE_EXTENSION_INIT3

static int fail(sqlite3 *facts, struct error *error) {
  int code = facts ? sqlite3_errcode(facts) & 0xff : SQLITE_NOMEM;
  return code == SQLITE_NOMEM ? error_set_memory(error)
                              : error_set(error, "%s", sqlite3_errmsg(facts));
}

sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error) {
  sqlite3_stmt *statement = 0;
  if (error_is_set(error)) return 0;
  if (sqlite3_prepare_v2(facts, sql, -1, &statement, 0) != SQLITE_OK) fail(facts, error);
  return statement;
}

int facts_row(sqlite3_stmt *statement, struct error *error) {
  int rc = statement && !error_is_set(error) ? sqlite3_step(statement) : SQLITE_DONE;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) fail(sqlite3_db_handle(statement), error);
  return rc == SQLITE_ROW;
}

int facts_run(sqlite3 *facts, const char *sql, struct error *error) {
  return sqlite3_exec(facts, sql, 0, 0, 0) == SQLITE_OK || fail(facts, error);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int take_row(void *context, sqlite3_stmt *row, int columns) {
  sqlite3_stmt *insert = context;
  int rc = SQLITE_OK;
  for (int i = 0; i < columns && rc == SQLITE_OK; i++) {
    sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(row, i));
    rc = value ? sqlite3_bind_value(insert, i + 1, value) : SQLITE_NOMEM;
    sqlite3_value_free(value);
  }
  if (rc == SQLITE_OK) rc = sqlite3_step(insert);
  return sqlite3_reset(insert) == SQLITE_OK && rc == SQLITE_DONE;
}

static int copy_table(sqlite3 *facts, struct ledger *ledger, const struct ledger_table *table,
                      struct error *error) {
  char *columns = ledger_table_declaration(table);
  char *create = columns ? sqlite3_mprintf("CREATE TABLE %s(%s)", table->name, columns) : 0;
  sqlite3_free(columns);
  int made = create ? facts_run(facts, create, error) : error_set_memory(error);
  sqlite3_free(create);
  if (!made) return 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendf(sql, "INSERT INTO %s VALUES (?", table->name);
  for (int i = 1; table->columns[i].name; i++) sqlite3_str_appendall(sql, ", ?");
  sqlite3_str_appendall(sql, ")");
  char *text = sqlite3_str_finish(sql);
  sqlite3_stmt *insert = text ? facts_prepare(facts, text, error) : 0;
  if (!text) error_set_memory(error);
  sqlite3_free(text);
  int copied = insert && ledger_table_read(ledger, table, 0, 0, 0, take_row, insert);
  sqlite3_finalize(insert);
  return copied;
}

/* ---- spending -------------------------------------------------------------------------------- */

static int take_spending(void *context, const struct ledger_spending *spending) {
  sqlite3_stmt *insert = context;
  sqlite3_bind_text(insert, 1, spending->tier, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(insert, 2, spending->period, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(insert, 3, spending->day, -1, SQLITE_TRANSIENT);
  sqlite3_bind_double(insert, 4, spending->share);
  int rc = sqlite3_step(insert);
  return sqlite3_reset(insert) == SQLITE_OK && rc == SQLITE_DONE;
}

/*
** Rounds a share of a budget up, and keeps four digits. The exact share that a model has spent
** would reveal the rate (the privacy cost, ledger/accountant.h) of the tier where the model was
** drawn (ledger/views.c).
*/
#define ROUGH(x) "CAST(printf('%.3e', " x " * 1.001) AS REAL)"

/* Copies the spending of all tiers in the facts. copy_table() must have copied dp_tier before. */
static int copy_spending(sqlite3 *facts, struct ledger *ledger, struct error *error) {
  sqlite3_stmt *tiers = facts_prepare(facts, "SELECT name FROM dp_tier ORDER BY rate DESC", error);
  sqlite3_stmt *insert = facts_prepare(
      facts, "INSERT INTO spending VALUES (?, ?, ?, min(1.0, " ROUGH("?") "))", error);
  while (facts_row(tiers, error) &&
         ledger_spending_read(ledger, (const char *)sqlite3_column_text(tiers, 0), take_spending,
                              insert))
    continue;
  sqlite3_finalize(tiers);
  sqlite3_finalize(insert);
  return !error_is_set(error);
}

static int copy_certificate(sqlite3 *facts, const char *certificate, struct error *error) {
  sqlite3_stmt *insert = facts_prepare(facts, "INSERT INTO certificate VALUES (?)", error);
  if (insert && sqlite3_bind_text(insert, 1, certificate, -1, SQLITE_TRANSIENT) != SQLITE_OK)
    fail(facts, error);
  facts_row(insert, error);
  sqlite3_finalize(insert);
  return !error_is_set(error);
}

static int fill(sqlite3 *facts, struct ledger *ledger, const char *certificate,
                struct error *error) {
  static const char tables[] =
      "CREATE TABLE certificate(document TEXT NOT NULL);"
      "CREATE TABLE spending(tier TEXT NOT NULL, period TEXT, day TEXT NOT NULL, share REAL)";
  /*
  ** The figures that a release with the same name has replaced: those of discarded releases. The
  ** certificate has the discarded releases that the audience has seen.
  */
  static const char corrected[] =
      "CREATE TABLE corrected AS SELECT json_extract(r.value, '$.name') AS release,"
      " substr(max(json_extract(p.value, '$.published_at')), 1, 10) AS day"
      " FROM certificate, json_each(document, '$.releases') r,"
      " json_each(r.value, '$.publications') p"
      " WHERE json_extract(r.value, '$.state') = 'discarded'"
      " OR json_extract(r.value, '$.discarded') GROUP BY 1";
  int going = facts_run(facts, tables, error) && copy_certificate(facts, certificate, error) &&
              facts_run(facts, corrected, error);
  for (int i = 0; i < ledger_table_count && going; i++)
    going = copy_table(facts, ledger, &ledger_tables[i], error);
  return going && copy_spending(facts, ledger, error);
}

sqlite3 *facts_open(struct ledger *ledger, const char *certificate, struct error *error) {
  sqlite3 *facts = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  const char *vfs = sqlite3_vfs_find(FILE_VFS) ? FILE_VFS : 0; /* the VFS for attached files */
  if (own_connection_open(&facts, ":memory:", flags, vfs) != SQLITE_OK) {
    fail(facts, error);
  } else {
    ledger_watch(ledger, facts);
    if (!series_register(facts)) error_set_memory(error);
    if (fill(facts, ledger, certificate, error)) return facts;
  }
  sqlite3_close(facts);
  return 0;
}
