/*
** marker.c: owns dp_ledger_id, the one-row table that a ledger leaves in the database it belongs
** to, so that a copied or restored database cannot silently start a fresh budget (L3).
**
** This is the only SQL that the ledger runs on the host's connection.
*/
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

void marker_clear(struct marker *marker) {
  sqlite3_free(marker->id);
  sqlite3_free(marker->path);
  *marker = (struct marker){0, 0};
}

static int fail_host(struct ledger *ledger, const char *what) {
  return ledger_fail(ledger, "cannot %s: %s", what, sqlite3_errmsg(ledger->host));
}

int marker_read(struct ledger *ledger, const char *schema, struct marker *marker) {
  *marker = (struct marker){0, 0};
  if (sqlite3_table_column_metadata(ledger->host, schema, "dp_ledger_id", "id", 0, 0, 0, 0, 0) !=
      SQLITE_OK) {
    /* Not there, or a schema that cannot be read; the latter would fail every statement anyway. */
    return sqlite3_errcode(ledger->host) == SQLITE_ERROR ? 1
                                                         : fail_host(ledger, "read dp_ledger_id");
  }
  char *sql = sqlite3_mprintf("SELECT id, path FROM \"%w\".dp_ledger_id", schema);
  sqlite3_stmt *statement = 0;
  if (sql && sqlite3_prepare_v2(ledger->host, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    marker->id = column_copy(ledger, statement, 0);
    marker->path = column_copy(ledger, statement, 1);
  }
  sqlite3_free(sql);
  int rc = sqlite3_finalize(statement);
  if (!ledger->error && rc != SQLITE_OK) fail_host(ledger, "read dp_ledger_id");
  if (!ledger->error && (!marker->id || !marker->path))
    ledger_fail(ledger,
                "the table dp_ledger_id of '%s' is damaged (restore it, or DROP TABLE "
                "dp_ledger_id to start a new budget)",
                schema);
  if (ledger->error) marker_clear(marker);
  return !ledger->error;
}

static int host_run(struct ledger *ledger, const char *sql, const char *what) {
  return sqlite3_exec(ledger->host, sql, 0, 0, 0) == SQLITE_OK || fail_host(ledger, what);
}

int marker_write(struct ledger *ledger, const char *id, const char *path) {
  static const char what[] = "leave the marker dp_ledger_id in the database";
  struct marker marker = {0, 0};
  char *insert = sqlite3_mprintf("INSERT INTO main.dp_ledger_id SELECT %Q, %Q"
                                 " WHERE NOT EXISTS (SELECT 1 FROM main.dp_ledger_id)",
                                 id, path);
  sqlite3_stmt *rollback = 0; /* compiled now: there may be no memory when it is needed */
  if (!insert || sqlite3_prepare_v2(ledger->host, "ROLLBACK", -1, &rollback, 0) != SQLITE_OK) {
    sqlite3_free(insert);
    return ledger_fail(ledger, "out of memory");
  }
  if (host_run(ledger, "BEGIN IMMEDIATE", what)) {
    host_run(ledger,
             "CREATE TABLE IF NOT EXISTS main.dp_ledger_id(id TEXT NOT NULL,"
             " path TEXT NOT NULL)",
             what);
    if (!ledger->error) host_run(ledger, insert, what);
    if (!ledger->error && marker_read(ledger, "main", &marker) && strcmp(marker.id, id) != 0)
      ledger_fail(ledger,
                  "another process has just given this database another ledger (try again)");
    if (!ledger->error) host_run(ledger, "COMMIT", what);
  }
  /* A BEGIN that fails for want of memory can leave a transaction open. The first error counts. */
  if (ledger->error && !sqlite3_get_autocommit(ledger->host)) sqlite3_step(rollback);
  sqlite3_finalize(rollback);
  marker_clear(&marker);
  sqlite3_free(insert);
  return !ledger->error;
}

int marker_drop(struct ledger *ledger) {
  return sqlite3_exec(ledger->host, "DROP TABLE main.dp_ledger_id", 0, 0, 0) == SQLITE_OK;
}

int host_in_memory(const struct ledger *ledger) {
  const char *file = sqlite3_db_filename(ledger->host, "main");
  if (!file || !*file) return 1;
  sqlite3_vfs *vfs = 0;
  sqlite3_file_control(ledger->host, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  return vfs && strcmp(vfs->zName, "memdb") == 0;
}

static int check_one(struct ledger *ledger, const char *schema, const char *file) {
  if (strcmp(schema, "main") == 0 || strcmp(schema, "temp") == 0) return 1;
  struct marker marker;
  if (!marker_read(ledger, schema, &marker)) return 0;
  if (marker.id && strcmp(marker.id, ledger->id) != 0) {
    ledger_fail(ledger,
                "the attached database '%s' belongs to another privacy ledger "
                "(open it as the main database, or DETACH it)",
                schema);
  } else if (!marker.id && file && *file && strcmp(ledger->path, MEMORY_PATH) == 0) {
    ledger_fail(ledger,
                "the file '%s' is attached to an in-memory database whose budget would be "
                "forgotten (name a ledger file: dp_init('{\"path\":\"...\"}'))",
                schema);
  }
  marker_clear(&marker);
  return !ledger->error;
}

int marker_check_attached(struct ledger *ledger) {
  sqlite3_stmt *list = 0;
  if (sqlite3_prepare_v2(ledger->host, "PRAGMA database_list", -1, &list, 0) != SQLITE_OK)
    return fail_host(ledger, "list the attached databases");
  while (!ledger->error && sqlite3_step(list) == SQLITE_ROW) {
    check_one(ledger, (const char *)sqlite3_column_text(list, 1),
              (const char *)sqlite3_column_text(list, 2));
  }
  int rc = sqlite3_finalize(list);
  if (ledger->error) return 0;
  return rc == SQLITE_OK || fail_host(ledger, "list the attached databases");
}
