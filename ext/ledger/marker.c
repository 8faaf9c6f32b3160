/*
** marker.c: reads and writes the marker, dp_ledger_id. The marker is a table with one row in the
** database that a ledger belongs to. The marker prevents a copied or restored database from
** silently starting a fresh budget (L3). This file also finds out whether the host may write (L7).
**
** Only the code here and the probe of handle.c run SQL on the host's connection. The database
** may come from anybody, so a table dp_ledger_id can contain anything. A statement on the marker
** can also fail because of the host, for example because of its authorizer. The error for such a
** failure never calls the marker damaged and never advises the user to drop the marker.
** Tests: tests/ledger/test_moves.py, tests/ledger/test_ledger.py
*/
#include "ledger/connection.h"

#include <string.h>

#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

void marker_clear(struct marker *marker) {
  sqlite3_free(marker->id);
  sqlite3_free(marker->path);
  *marker = (struct marker){0, 0};
}

static int fail_host(struct ledger *ledger, const char *what) {
  return ledger_fail(ledger, "cannot %s: %s", what, sqlite3_errmsg(ledger->host));
}

/* ---- reading --------------------------------------------------------------------------------- */

#define MAX_ID   255
#define MAX_PATH 4096

static int fail_read(struct ledger *ledger, const char *schema, const char *why) {
  /* Advice: A lock, an interrupt, or an authorizer of the application. In a UTF-16 database,
     SQLite 3.42 and 3.45 say `database table is locked` until the connection has read a table:
     run `SELECT count(*) FROM sqlite_master` first. */
  return ledger_fail(ledger, "cannot read the marker dp_ledger_id of '%s': %s (try again)", schema,
                     why);
}

static int fail_foreign(struct ledger *ledger, const char *schema, const char *why) {
  return ledger_fail(ledger,
                     "'%s' has a dp_ledger_id that is not the marker of a privacy ledger: %s "
                     "(rename it if it is yours, or restore the database from a backup)",
                     schema, why);
}

/*
** Returns whether the file has a table or view dp_ledger_id. The function reads the schema table in
** the file, because SQLite's copy of the schema may be older than a change by another connection.
** The function reads this table row by row, so that it notices an authorizer that hides the table.
*/
static int is_listed(struct ledger *ledger, const char *schema) {
  int found = 0, hidden = 0, rc = SQLITE_DONE;
  sqlite3_stmt *list = 0;
  char *sql = sqlite3_mprintf("SELECT name, type FROM \"%w\".sqlite_master", schema);
  if (!sql) return ledger_fail(ledger, "out of memory");
  if (sqlite3_prepare_v2(ledger->host, sql, -1, &list, 0) != SQLITE_OK)
    fail_read(ledger, schema, sqlite3_errmsg(ledger->host));
  sqlite3_free(sql);
  if (!list) return 0;
  hidden = sqlite3_column_count(list) != 2;
  while (!found && !hidden && (rc = sqlite3_step(list)) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(list, 0);
    const char *type = (const char *)sqlite3_column_text(list, 1);
    hidden = !name || !type;
    found = !hidden && sqlite3_stricmp(name, "dp_ledger_id") == 0 &&
            (strcmp(type, "table") == 0 || strcmp(type, "view") == 0);
  }
  if (rc != SQLITE_ROW && rc != SQLITE_DONE)
    fail_read(ledger, schema, sqlite3_errmsg(ledger->host));
  if (hidden) fail_read(ledger, schema, "an authorizer of the host hides the schema");
  sqlite3_finalize(list);
  return found && !error_is_set(ledger->error);
}

/*
** Returns whether dp_ledger_id is an ordinary or virtual table with this column. The check does not
** depend on the host's authorizer. SQLite 3.54 follows a null pointer if it is asked for a column
** of a virtual table that it has not connected; preparing a statement connects the table.
*/
static int has_column(struct ledger *ledger, const char *schema, const char *column) {
  sqlite3_stmt *statement = 0;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".dp_ledger_id", schema);
  if (sql) sqlite3_prepare_v2(ledger->host, sql, -1, &statement, 0);
  sqlite3_finalize(statement);
  sqlite3_free(sql);
  return sqlite3_table_column_metadata(ledger->host, schema, "dp_ledger_id", column, 0, 0, 0, 0,
                                       0) == SQLITE_OK;
}

/*
** Finds out why the marker could not be read. Possible reasons are that there is no marker, that
** dp_ledger_id is another kind of object, and that the host prevents the reading.
*/
static int explain_unreadable(struct ledger *ledger, const char *schema, int rc, const char *why) {
  if ((rc & 0xff) != SQLITE_ERROR) return fail_read(ledger, schema, why);
  if (!is_listed(ledger, schema)) return !error_is_set(ledger->error);
  if (has_column(ledger, schema, "id") && has_column(ledger, schema, "path"))
    return fail_read(ledger, schema, why);
  return fail_foreign(ledger, schema, "it is not a table with the columns id and path");
}

/*
** Returns the text in a column if it has 1 to `most` bytes. Otherwise sets an error with the reason
** and returns null.
*/
static char *marker_text(struct ledger *ledger, const char *schema, sqlite3_stmt *row, int column,
                         int most) {
  int type = sqlite3_column_type(row, column);
  if (type == SQLITE_NULL) {
    fail_foreign(
        ledger, schema,
        "its id or path is NULL, or an authorizer of the host hides it from the extension");
  } else if (type != SQLITE_TEXT) {
    fail_foreign(ledger, schema, "its id or path is not a text");
  } else {
    const char *text = (const char *)sqlite3_column_text(row, column);
    int size = sqlite3_column_bytes(row, column);
    if (!text) {
      ledger_fail(ledger, "out of memory");
    } else if (size < 1 || size > most || strlen(text) != (size_t)size) {
      fail_foreign(ledger, schema, "its id or path is empty, too long or has a zero in it");
    } else {
      return column_copy(ledger, row, column);
    }
  }
  return 0;
}

/*
** Reads the marker from a prepared statement, which must return exactly one row. Returns SQLite's
** result code.
*/
static int take_marker(struct ledger *ledger, const char *schema, sqlite3_stmt *statement,
                       struct marker *marker) {
  if (sqlite3_column_count(statement) != 2) {
    fail_read(ledger, schema, "an authorizer of the host hides it");
    return SQLITE_OK;
  }
  int rc = sqlite3_step(statement);
  if ((rc == SQLITE_ROW || rc == SQLITE_DONE) && !has_column(ledger, schema, "id"))
    fail_foreign(ledger, schema, "it is a view");
  if (rc == SQLITE_DONE)
    ledger_fail(ledger,
                "the marker dp_ledger_id of '%s' is damaged: it has no row (restore the database "
                "from a backup, or DROP TABLE dp_ledger_id and name the file of its ledger: "
                "dp_init('{\"path\":\"...\"}'))",
                schema);
  if (rc != SQLITE_ROW) return rc;
  if (!error_is_set(ledger->error)) marker->id = marker_text(ledger, schema, statement, 0, MAX_ID);
  if (!error_is_set(ledger->error))
    marker->path = marker_text(ledger, schema, statement, 1, MAX_PATH);
  if (error_is_set(ledger->error)) return SQLITE_OK;
  rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW) fail_foreign(ledger, schema, "it has several rows");
  return rc;
}

int marker_read(struct ledger *ledger, const char *schema, struct marker *marker) {
  *marker = (struct marker){0, 0};
  if (!has_column(ledger, schema, "id") && !is_listed(ledger, schema))
    return !error_is_set(ledger->error);
  char *sql = sqlite3_mprintf("SELECT id, path FROM \"%w\".dp_ledger_id", schema);
  sqlite3_stmt *statement = 0;
  if (!sql) return ledger_fail(ledger, "out of memory");
  int rc = sqlite3_prepare_v2(ledger->host, sql, -1, &statement, 0);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) rc = take_marker(ledger, schema, statement, marker);
  int unreadable = rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE;
  char *why = unreadable ? sqlite3_mprintf("%s", sqlite3_errmsg(ledger->host)) : 0;
  sqlite3_finalize(statement);
  if (unreadable) {
    marker_clear(marker);
    explain_unreadable(ledger, schema, rc, why ? why : "out of memory");
  }
  sqlite3_free(why);
  if (error_is_set(ledger->error)) marker_clear(marker);
  return !error_is_set(ledger->error);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int host_run(struct ledger *ledger, const char *sql, const char *what) {
  return sqlite3_exec(ledger->host, sql, 0, 0, 0) == SQLITE_OK || fail_host(ledger, what);
}

/* Writes the marker inside the open transaction, unless another process has just written it. */
static void write_new(struct ledger *ledger, const char *id, const char *insert, const char *what) {
  struct marker marker;
  if (!marker_read(ledger, "main", &marker)) return;
  if (!marker.id) {
    if (host_run(ledger, "CREATE TABLE main.dp_ledger_id(id TEXT NOT NULL, path TEXT NOT NULL)",
                 what))
      host_run(ledger, insert, what);
  } else if (strcmp(marker.id, id) != 0) {
    ledger_fail(ledger, "another process has just given this database another ledger (try again)");
  }
  marker_clear(&marker);
}

/*
** Sets the error for a statement that an authorizer answered with SQLITE_IGNORE. Such a statement
** does nothing, and SQLite reports no error.
*/
static int fail_ignored(struct ledger *ledger, const char *what) {
  return ledger_fail(ledger, "cannot %s: an authorizer of the host ignores it", what);
}

static void check_written(struct ledger *ledger, const char *id, const char *what) {
  struct marker marker;
  if (!has_column(ledger, "main", "id")) {
    fail_ignored(ledger, what);
  } else if (marker_read(ledger, "main", &marker)) {
    if (!marker.id || strcmp(marker.id, id) != 0) fail_ignored(ledger, what);
    marker_clear(&marker);
  }
}

/*
** Returns the integer that a pragma of the host shows. If the pragma shows none, for example
** because an authorizer ignores it, sets the error and returns -1.
*/
static int host_pragma(struct ledger *ledger, const char *sql, const char *what) {
  sqlite3_stmt *pragma = 0;
  int value = -1;
  if (sqlite3_prepare_v2(ledger->host, sql, -1, &pragma, 0) == SQLITE_OK &&
      sqlite3_step(pragma) == SQLITE_ROW)
    value = sqlite3_column_int(pragma, 0);
  if (sqlite3_finalize(pragma) != SQLITE_OK) fail_host(ledger, what);
  if (value < 0 && !error_is_set(ledger->error)) fail_ignored(ledger, what);
  return value;
}

/* How the host's commits reach the disk. */
struct durability {
  int synchronous, fullfsync;
};

static int set_durability(struct ledger *ledger, struct durability durability, const char *what) {
  char sql[80];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA main.synchronous = %d; PRAGMA fullfsync = %d",
                   durability.synchronous, durability.fullfsync);
  return host_run(ledger, sql, what);
}

static void commit_marker(struct ledger *ledger, const char *id, const char *path,
                          const char *what) {
  char *insert = sqlite3_mprintf("INSERT INTO main.dp_ledger_id VALUES (%Q, %Q)", id, path);
  sqlite3_stmt *rollback = 0; /* prepared now, because memory may run out later */
  if (!insert || sqlite3_prepare_v2(ledger->host, "ROLLBACK", -1, &rollback, 0) != SQLITE_OK) {
    sqlite3_free(insert);
    ledger_fail(ledger, "out of memory");
    return;
  }
  if (host_run(ledger, "BEGIN IMMEDIATE", what)) {
    if (sqlite3_get_autocommit(ledger->host)) fail_ignored(ledger, what);
    if (!error_is_set(ledger->error)) write_new(ledger, id, insert, what);
    if (!error_is_set(ledger->error)) check_written(ledger, id, what);
    if (!error_is_set(ledger->error)) host_run(ledger, "COMMIT", what);
    if (!error_is_set(ledger->error) && !sqlite3_get_autocommit(ledger->host))
      fail_ignored(ledger, what);
  }
  /*
  ** A BEGIN that fails for lack of memory can leave a transaction open. An error of this rollback
  ** is not reported, because the error of BEGIN is already set.
  */
  if (error_is_set(ledger->error) && !sqlite3_get_autocommit(ledger->host)) sqlite3_step(rollback);
  sqlite3_finalize(rollback);
  sqlite3_free(insert);
}

/*
** The commit must reach the disk before the ledger is committed. If a loss of power took the marker
** back, nothing would lead to a ledger at a path of its own, and dp_init() would start a second
** budget. A WAL database with synchronous = NORMAL, for example, does not sync its commits.
*/
int marker_write(struct ledger *ledger, const char *id, const char *path) {
  static const char what[] = "leave the marker dp_ledger_id in the database";
  static const struct durability durable = {3, 1}; /* EXTRA, and the disk's own cache on macOS */
  struct durability before;
  before.synchronous = host_pragma(ledger, "PRAGMA main.synchronous", what);
  before.fullfsync = host_pragma(ledger, "PRAGMA fullfsync", what);
  if (error_is_set(ledger->error)) return 0;
  if (set_durability(ledger, durable, what)) commit_marker(ledger, id, path, what);
  struct error error = error_take(ledger->error);
  set_durability(ledger, before, what);
  error_restore(ledger->error, error);
  return !error_is_set(ledger->error);
}

/* Returns whether an UPDATE of the marker changes only the marker and runs no trigger. */
static int is_plain(sqlite3 *host) {
  sqlite3_stmt *others = 0;
  int plain =
      sqlite3_prepare_v2(host,
                         "SELECT 1 FROM main.sqlite_master WHERE lower(tbl_name) = 'dp_ledger_id'"
                         " AND (type = 'trigger' OR ifnull(rootpage, 0) = 0) LIMIT 1",
                         -1, &others, 0) == SQLITE_OK &&
      sqlite3_step(others) == SQLITE_DONE;
  sqlite3_finalize(others);
  return plain;
}

void marker_correct(struct ledger *ledger, const struct marker *marker, const char *path) {
  sqlite3 *host = ledger->host;
  if (ledger->correction_failed || ledger->audience || ledger->read_only ||
      !sqlite3_get_autocommit(host) || sqlite3_txn_state(host, 0) == SQLITE_TXN_WRITE)
    return;
  char *update = sqlite3_mprintf("UPDATE main.dp_ledger_id SET path = %Q WHERE id = %Q AND"
                                 " path = %Q",
                                 path, marker->id, marker->path);
  ledger->correction_failed =
      !update || !is_plain(host) || sqlite3_exec(host, update, 0, 0, 0) != SQLITE_OK;
  sqlite3_free(update);
}

int host_in_memory(const struct ledger *ledger) {
  const char *file = sqlite3_db_filename(ledger->host, "main");
  if (!file || !*file) return 1;
  sqlite3_vfs *vfs = 0;
  sqlite3_file_control(ledger->host, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  return vfs && strcmp(vfs->zName, "memdb") == 0;
}

/* ---- the attached databases ------------------------------------------------------------------ */

typedef void see_database(struct ledger *ledger, const char *schema, const char *file);

/* Calls `see` for main and every attached database, until there is an error. */
static int each_database(struct ledger *ledger, see_database *see) {
  static const char what[] = "list the attached databases";
  sqlite3_stmt *list = 0;
  int seen_main = 0;
  if (sqlite3_prepare_v2(ledger->host, "PRAGMA database_list", -1, &list, 0) != SQLITE_OK)
    return fail_host(ledger, what);
  while (!error_is_set(ledger->error) && sqlite3_step(list) == SQLITE_ROW) {
    const char *schema = (const char *)sqlite3_column_text(list, 1);
    const char *file = (const char *)sqlite3_column_text(list, 2);
    if (!schema) {
      ledger_fail(ledger, "out of memory");
    } else if (strcmp(schema, "main") == 0) {
      seen_main = 1;
    } else if (strcmp(schema, "temp") != 0) {
      see(ledger, schema, file);
    }
  }
  int rc = sqlite3_finalize(list);
  if (!error_is_set(ledger->error) && rc != SQLITE_OK) fail_host(ledger, what);
  return (seen_main && !error_is_set(ledger->error)) ||
         ledger_fail(ledger, "cannot %s: an authorizer of the host hides them", what);
}

static void check_ledger(struct ledger *ledger, const char *schema, const char *file) {
  struct marker marker;
  if (!marker_read(ledger, schema, &marker)) return;
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
}

int marker_check_attached(struct ledger *ledger) {
  return each_database(ledger, check_ledger);
}

/* ---- what the host can write ----------------------------------------------------------------- */

/*
** Returns whether PRAGMA query_only is on, which sqlite3_db_readonly() does not show. If the host
** refuses the pragma, the function returns 1.
*/
static int is_query_only(struct ledger *ledger) {
  sqlite3_stmt *pragma = 0;
  int rc = sqlite3_prepare_v2(ledger->host, "PRAGMA query_only", -1, &pragma, 0);
  /* If there is no statement, an authorizer of the host returned SQLITE_IGNORE for the pragma. */
  if (rc == SQLITE_OK) rc = pragma ? sqlite3_step(pragma) : SQLITE_AUTH;
  int on = rc != SQLITE_ROW || sqlite3_column_int(pragma, 0) != 0;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE && (rc & 0xff) != SQLITE_AUTH)
    fail_host(ledger, "read PRAGMA query_only");
  sqlite3_finalize(pragma);
  return on && !error_is_set(ledger->error);
}

static void check_attached_writable(struct ledger *ledger, const char *schema, const char *file) {
  (void)file;
  if (sqlite3_db_readonly(ledger->host, schema) != 0)
    ledger->read_only = "a database attached to the one in memory is read-only";
}

int host_check(struct ledger *ledger) {
  if (ledger->read_only) return 1;
  if (sqlite3_db_readonly(ledger->host, "main") != 0) {
    ledger->read_only = "the database is read-only";
  } else if (is_query_only(ledger)) {
    ledger->read_only = "PRAGMA query_only is or was on";
  } else if (!error_is_set(ledger->error) && host_in_memory(ledger)) {
    each_database(ledger, check_attached_writable);
  }
  return !error_is_set(ledger->error);
}
