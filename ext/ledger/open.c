/* open.c: finds, opens, creates (dp_init()) and copies the ledger of a database. The ledger is at
** the path in the marker, or beside the database.
**
** The marker, dp_ledger_id, is a table with one row in the database that a ledger belongs to. It
** prevents a copied or restored database from silently starting a fresh budget (L3).
**
** Only the code here and the probe of connection.c run SQL on the host's connection. The database
** may come from anybody, so a table dp_ledger_id can contain anything. A statement on the marker
** can also fail because of the host, for example because of its authorizer. The error for such a
** failure never calls the marker damaged and never advises the user to drop the marker.
** Tests: tests/ledger/test_moves.py, tests/ledger/test_files.py, tests/ledger/test_concurrency.py,
** tests/ledger/test_columns.py, tests/ledger/test_ledger.py */
#include <string.h>

#include "base/own_connection.h"
#include "ledger/internal.h"
#include "ledger_sql.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

const char *const ledger_schema = ledger_sql;

struct marker {
  char *id, *path; /* both are null if there is no marker */
};

static void marker_clear(struct marker *marker) {
  sqlite3_free(marker->id);
  sqlite3_free(marker->path);
  *marker = (struct marker){0, 0};
}

static int fail_host(struct ledger *ledger, const char *what) {
  return ledger_fail(ledger, "cannot %s: %s", what, sqlite3_errmsg(ledger->host));
}

/* ---- the marker: reading --------------------------------------------------------------------- */

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

/* Returns whether the file has a table or view dp_ledger_id. SQLite's copy of the schema may be
** older than a change by another connection, so the function reads the schema table in the file,
** row by row, to notice an authorizer that hides the table. */
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

/* Returns whether dp_ledger_id is an ordinary or virtual table with this column, whatever the
** host's authorizer says. SQLite 3.54 follows a null pointer if it is asked for a column of a
** virtual table that it has not connected; preparing a statement connects the table. */
static int has_column(struct ledger *ledger, const char *schema, const char *column) {
  sqlite3_stmt *statement = 0;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".dp_ledger_id", schema);
  if (sql) sqlite3_prepare_v2(ledger->host, sql, -1, &statement, 0);
  sqlite3_finalize(statement);
  sqlite3_free(sql);
  return sqlite3_table_column_metadata(ledger->host, schema, "dp_ledger_id", column, 0, 0, 0, 0,
                                       0) == SQLITE_OK;
}

/* Finds out why the marker could not be read: there is none, dp_ledger_id is another kind of
** object, or the host prevents the reading. */
static int explain_unreadable(struct ledger *ledger, const char *schema, int rc, const char *why) {
  if ((rc & 0xff) != SQLITE_ERROR) return fail_read(ledger, schema, why);
  if (!is_listed(ledger, schema)) return !error_is_set(ledger->error);
  if (has_column(ledger, schema, "id") && has_column(ledger, schema, "path"))
    return fail_read(ledger, schema, why);
  return fail_foreign(ledger, schema, "it is not a table with the columns id and path");
}

/* Returns the text in a column if it has 1 to `most` bytes, or null with an error that says why. */
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

/* Reads the marker from a statement, which must return exactly one row. Returns SQLite's result. */
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

static int marker_read(struct ledger *ledger, const char *schema, struct marker *marker) {
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

/* ---- the marker: writing --------------------------------------------------------------------- */

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

/* An authorizer answered with SQLITE_IGNORE: the statement does nothing, and SQLite reports no
** error. */
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

/* Returns the integer that a pragma of the host shows, or -1 with an error. */
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

/* Sets how the host's commits reach the disk. */
static int set_durability(struct ledger *ledger, int synchronous, int fullfsync, const char *what) {
  char sql[80];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA main.synchronous = %d; PRAGMA fullfsync = %d",
                   synchronous, fullfsync);
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
  /* A BEGIN that fails for lack of memory can leave a transaction open. The first error stands. */
  if (error_is_set(ledger->error) && !sqlite3_get_autocommit(ledger->host)) sqlite3_step(rollback);
  sqlite3_finalize(rollback);
  sqlite3_free(insert);
}

/* The commit must reach the disk before the ledger is committed. If a loss of power took the marker
** back, nothing would lead to a ledger at a path of its own, and dp_init() would start a second
** budget. A WAL database with synchronous = NORMAL, for example, does not sync its commits. */
static int marker_write(struct ledger *ledger, const char *id, const char *path) {
  static const char what[] = "leave the marker dp_ledger_id in the database";
  int synchronous = host_pragma(ledger, "PRAGMA main.synchronous", what);
  int fullfsync = host_pragma(ledger, "PRAGMA fullfsync", what);
  if (error_is_set(ledger->error)) return 0;
  /* EXTRA, and the disk's own cache on macOS */
  if (set_durability(ledger, 3, 1, what)) commit_marker(ledger, id, path, what);
  struct error error = error_take(ledger->error);
  set_durability(ledger, synchronous, fullfsync, what);
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

static void marker_correct(struct ledger *ledger, const struct marker *marker, const char *path) {
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

static int host_in_memory(const struct ledger *ledger) {
  const char *file = sqlite3_db_filename(ledger->host, "main");
  if (!file || !*file) return 1;
  sqlite3_vfs *vfs = 0;
  sqlite3_file_control(ledger->host, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  return vfs && strcmp(vfs->zName, "memdb") == 0;
}

const char *ledger_database(const struct ledger *ledger) {
  return host_in_memory(ledger) ? 0 : sqlite3_db_filename(ledger->host, "main");
}

/* ---- the attached databases ------------------------------------------------------------------ */

/* An attached database may not belong to a ledger that is not the open ledger (L3). */
static void check_attached(struct ledger *ledger, const char *schema, const char *file) {
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

/* Goes through the attached databases: checks to which ledger they belong, or (`writing`) whether
** the host can write them. */
static int check_databases(struct ledger *ledger, int writing) {
  static const char what[] = "list the attached databases";
  sqlite3_stmt *list = 0;
  int seen_main = 0;
  if (sqlite3_prepare_v2(ledger->host, "PRAGMA database_list", -1, &list, 0) != SQLITE_OK)
    return fail_host(ledger, what);
  while (!error_is_set(ledger->error) && sqlite3_step(list) == SQLITE_ROW) {
    const char *schema = (const char *)sqlite3_column_text(list, 1);
    if (!schema) {
      ledger_fail(ledger, "out of memory");
    } else if (strcmp(schema, "main") == 0) {
      seen_main = 1;
    } else if (strcmp(schema, "temp") != 0 && !writing) {
      check_attached(ledger, schema, (const char *)sqlite3_column_text(list, 2));
    } else if (strcmp(schema, "temp") != 0 && sqlite3_db_readonly(ledger->host, schema) != 0) {
      ledger->read_only = "a database attached to the one in memory is read-only";
    }
  }
  int rc = sqlite3_finalize(list);
  if (!error_is_set(ledger->error) && rc != SQLITE_OK) fail_host(ledger, what);
  return (seen_main && !error_is_set(ledger->error)) ||
         ledger_fail(ledger, "cannot %s: an authorizer of the host hides them", what);
}

/* ---- what the host can write ----------------------------------------------------------------- */

/* Returns whether PRAGMA query_only is on, which sqlite3_db_readonly() does not show, or
** refused. */
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

static int host_check(struct ledger *ledger) {
  if (ledger->read_only) return 1;
  if (sqlite3_db_readonly(ledger->host, "main") != 0) {
    ledger->read_only = "the database is read-only";
  } else if (is_query_only(ledger)) {
    ledger->read_only = "PRAGMA query_only is or was on";
  } else if (!error_is_set(ledger->error) && host_in_memory(ledger)) {
    check_databases(ledger, 1);
  }
  return !error_is_set(ledger->error);
}

/* ---- where the ledger is --------------------------------------------------------------------- */

/* Returns the path of `name` in the database's folder, if it has one and `name` is relative. The
** caller calls sqlite3_free(). */
static char *resolve(const struct ledger *ledger, const char *name) {
  const char *database = ledger_database(ledger), *file = database ? path_name(database) : 0;
  if (path_is_absolute(name) || strcmp(name, MEMORY_PATH) == 0 || file == database)
    return sqlite3_mprintf("%s", name);
  return sqlite3_mprintf("%.*s%s", (int)(file - database), database, name);
}

/* Returns the default path of a ledger, as a marker stores it: relative to the database, so that
** both files can move together. The caller calls sqlite3_free(). */
static char *default_name(const struct ledger *ledger) {
  const char *database = ledger_database(ledger);
  return database ? sqlite3_mprintf("%s-ledger", path_name(database))
                  : sqlite3_mprintf("%s", MEMORY_PATH);
}

/* Returns whether two names mean the same file, or the same name in the same folder. */
static int same_place(const char *a, const char *b) {
  const char *name_a = path_name(a), *name_b = path_name(b);
  if (strcmp(a, b) == 0 || file_same(a, b)) return 1;
  if (name_a == a || name_b == b || !path_names_match(name_a, name_b)) return 0;
  char *folder_a = sqlite3_mprintf("%.*s", (int)(name_a - a), a);
  char *folder_b = sqlite3_mprintf("%.*s", (int)(name_b - b), b);
  /* If memory runs out, assume the same file. */
  int same = !folder_a || !folder_b || file_same(folder_a, folder_b);
  sqlite3_free(folder_a);
  sqlite3_free(folder_b);
  return same;
}

/* Returns whether `path` is a database, its journal, WAL, WAL index or the lock of a ledger, or the
** database is such a file of a database at `path`. Such a file can never be a ledger. */
static int file_is_hosts(const char *path, const char *database) {
  static const char *const suffixes[] = {"", "-journal", "-wal", "-shm", "-lock"};
  int same = 0;
  for (int i = 0; i < 5 && !same; i++) {
    char *of_host = sqlite3_mprintf("%s%s", database, suffixes[i]);
    char *of_ledger = sqlite3_mprintf("%s%s", path, suffixes[i]);
    same = !of_host || !of_ledger || same_place(path, of_host) || same_place(of_ledger, database);
    sqlite3_free(of_host);
    sqlite3_free(of_ledger);
  }
  return same;
}

static const char *database_name(const struct ledger *ledger) {
  const char *database = ledger_database(ledger);
  return database ? path_name(database) : MEMORY_PATH;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int add_words(struct ledger *ledger, sqlite3 *db) {
  return ledger->words(db) == SQLITE_OK || ledger_fail(ledger, "out of memory");
}

/* Opens a file that must be a ledger of this format. */
static int open_existing(struct ledger *ledger) {
  if (connection_start(ledger) && add_words(ledger, ledger->db) && !connection_is_ledger(ledger))
    ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)", ledger->path);
  if (!error_is_set(ledger->error) && connection_set_journal(ledger)) {
    int format = (int)statement_integer(ledger, "PRAGMA user_version", "");
    if (format != LEDGER_FORMAT)
      ledger_fail(ledger,
                  "the privacy ledger '%s' has format %d, and this version reads format "
                  "%d (use the version of diffuse that wrote it)",
                  ledger->path, format, LEDGER_FORMAT);
  }
  if (error_is_set(ledger->error) || !connection_read_terms(ledger)) {
    connection_close(ledger);
    return 0;
  }
  lock_drop(ledger);
  ledger_caller_end(ledger); /* no transaction may follow, whose end would do this */
  return 1;
}

/* Another process may be creating a ledger in an empty file, and then holds its lock. */
static int wait_for_creator(struct ledger *ledger) {
  if (!file_exists(ledger->path)) return 0;
  int waited = connection_start(ledger) && ledger_begin_trial(ledger);
  ledger_rollback(ledger);
  connection_close(ledger);
  return waited && file_has_content(ledger->path);
}

/* Opens the ledger at `path`, of which it takes ownership, unless it is open already. Returns 0
** without an error if there is none. A ledger in memory cannot be opened again. The files of the
** host's database are refused, because closing them would drop the host's own locks. */
static int use_path(struct ledger *ledger, char *path) {
  if (!path) return ledger_fail(ledger, "out of memory");
  if (ledger->db && ledger->path && strcmp(ledger->path, path) == 0) {
    sqlite3_free(path);
    return connection_check(ledger);
  }
  connection_close(ledger);
  sqlite3_free(ledger->path);
  ledger->path = path;
  if (ledger_is_memory(ledger)) return 0;
  if (!host_in_memory(ledger) &&
      file_is_hosts(ledger->path, sqlite3_db_filename(ledger->host, "main")))
    return ledger_fail(ledger,
                       "path '%s' is a file of the database itself (a ledger is a file of its own)",
                       ledger->path);
  if (!file_has_content(ledger->path) && !wait_for_creator(ledger)) return 0;
  return open_existing(ledger);
}

/* ---- the ledger that the marker names -------------------------------------------------------- */

/* Advice on how to restore a missing ledger, the safe ways first. */
#define BRING_BACK                                                                                 \
  "(bring the right one along as '%s', or restore it from a backup; only where it is lost for "    \
  "good, DROP TABLE dp_ledger_id starts a new budget)"

static int fail_missing(struct ledger *ledger, const char *beside) {
  if (ledger_is_memory(ledger))
    return ledger_fail(ledger,
                       "the privacy ledger of this database was in the memory of another "
                       "connection (restore the database from a backup with its ledger, or name a "
                       "file in dp_init() next time; only where it is lost for good, DROP TABLE "
                       "dp_ledger_id starts a new budget)");
  return ledger_fail(ledger, "the privacy ledger '%s' of this database is missing " BRING_BACK,
                     ledger->path, beside);
}

enum carried { NO_FILE, NO_LEDGER, OTHER_ID, SAME_ID, NOT_TOLD };

/* Returns whether a file of any format is the ledger with this id, on a connection of its own. */
static enum carried look_into(struct ledger *ledger, const char *path, const char *id) {
  if (!file_exists(path)) return NO_FILE;
  if (!file_has_content(path)) return NO_LEDGER;
  if (file_is_hosts(path, sqlite3_db_filename(ledger->host, "main"))) return NO_LEDGER;
  struct error error = {0};
  struct ledger *other = ledger_new(ledger->host, ledger->words, &error);
  enum carried carried = NOT_TOLD;
  if (!other || !(other->path = sqlite3_mprintf("%s", path))) {
    ledger_fail(ledger, "out of memory");
  } else if (connection_open(other)) {
    if (connection_is_ledger(other))
      other->id = statement_text(other, "SELECT id FROM dp_ledger", "");
    int code = sqlite3_errcode(other->db) & 0xff;
    if (!error_is_set(other->error))
      carried = !other->id ? NO_LEDGER : strcmp(other->id, id) == 0 ? SAME_ID : OTHER_ID;
    else if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      carried = NO_LEDGER;
  }
  if (carried == NOT_TOLD) ledger_fail(ledger, "%s", error_text(&error));
  ledger_free(other);
  error_clear(&error);
  return carried;
}

/* Returns whether the ledger has moved together with its database and is now beside it. The
** marker's path says where it was, and the marker's id identifies it. If two files have this id,
** they are copies, and each would miss the charges to the other: an error. */
static int has_moved(struct ledger *ledger, const struct marker *marker, const char *marked,
                     const char *beside) {
  if (host_in_memory(ledger) || strcmp(marked, beside) == 0 || !file_has_content(beside) ||
      file_same(marked, beside))
    return 0;
  enum carried at_mark = look_into(ledger, marked, marker->id);
  if (at_mark == NO_LEDGER || at_mark == NOT_TOLD) return 0;
  if (at_mark != SAME_ID && ledger->db && strcmp(ledger->path, beside) == 0)
    return 1; /* the ledger beside the database is open already */
  if (look_into(ledger, beside, marker->id) != SAME_ID) return 0;
  if (at_mark != SAME_ID) return 1;
  /* Advice: Compare `sqlite3 X-ledger "SELECT count(*), max(at) FROM dp_charge"` of both. If each
     has charges that the other lacks, treat both as spent. */
  return ledger_fail(ledger,
                     "'%s' and '%s' are copies of one privacy ledger, and this database may be "
                     "charged to one only (keep the one that was charged last, and move the other "
                     "away)",
                     marked, beside);
}

/* Opens the ledger that the marker names and checks its id (L3). */
static int open_marked(struct ledger *ledger, const struct marker *marker) {
  /* The marker's path is relative to that file, and nothing leads from the copy to its folder. */
  if (host_in_memory(ledger) && !path_is_absolute(marker->path) &&
      strcmp(marker->path, MEMORY_PATH) != 0)
    return ledger_fail(ledger,
                       "this database in memory is a copy of a file whose privacy ledger is '%s' "
                       "beside that file (open the file itself)",
                       marker->path);
  char *marked = resolve(ledger, marker->path), *name = default_name(ledger);
  char *beside = name ? resolve(ledger, name) : 0;
  if (!marked || !beside) ledger_fail(ledger, "out of memory");
  int moved = !error_is_set(ledger->error) && has_moved(ledger, marker, marked, beside);
  if (!error_is_set(ledger->error) &&
      !use_path(ledger, sqlite3_mprintf("%s", moved ? beside : marked)) &&
      !error_is_set(ledger->error))
    fail_missing(ledger, beside);
  if (!error_is_set(ledger->error) && strcmp(ledger->id, marker->id) != 0)
    ledger_fail(ledger, "'%s' is the privacy ledger of another database " BRING_BACK, ledger->path,
                beside);
  if (!error_is_set(ledger->error) && moved) marker_correct(ledger, marker, name);
  sqlite3_free(marked);
  sqlite3_free(name);
  sqlite3_free(beside);
  return !error_is_set(ledger->error);
}

int ledger_ready(struct ledger *ledger) {
  if (!ledger_wake(ledger, 1, 0)) return 0; /* the marker is not read after a fork() */
  struct marker marker;
  if (!host_check(ledger) || !marker_read(ledger, "main", &marker)) return 0;
  char *name = marker.id ? 0 : default_name(ledger); /* without a marker: beside it */
  int found =
      marker.id ? open_marked(ledger, &marker) : use_path(ledger, name ? resolve(ledger, name) : 0);
  sqlite3_free(name);
  marker_clear(&marker);
  if (found) return check_databases(ledger, 0);
  /* Advice: Or you have opened another file than you think: SQLite creates an empty database for
     a mistyped name. A ledger at a path of its own is found with `dp_init('{"path":"…"}')`;
     `dp_init()` alone would start a second budget. */
  if (!ledger->read_only)
    return ledger_fail(ledger, "no privacy ledger for '%s' (run SELECT dp_init())",
                       database_name(ledger));
  return ledger_fail(ledger,
                     "no privacy ledger for '%s', and this connection cannot write its database: "
                     "%s (run SELECT dp_init() on a connection that can)",
                     database_name(ledger), ledger->read_only);
}

int ledger_has_file(const struct ledger *ledger, const char *path) {
  const char *database = ledger_database(ledger);
  return (database && file_is_hosts(path, database)) ||
         (!ledger_is_memory(ledger) && file_is_hosts(path, ledger->path));
}

/* ---- a copy in memory ------------------------------------------------------------------------ */

#define PAGES 1000 /* pages to copy between two checks for an interrupt */

int ledger_begin_copy(struct ledger *ledger) {
  sqlite3 *copy = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (!ledger_begin_reading(ledger)) return 0;
  if (own_connection_open(&copy, MEMORY_PATH, flags, 0) != SQLITE_OK)
    ledger_fail(ledger, "out of memory");
  if (!error_is_set(ledger->error) && add_words(ledger, copy)) {
    sqlite3_backup *backup = sqlite3_backup_init(copy, "main", ledger->db, "main");
    int rc = backup ? SQLITE_OK : sqlite3_errcode(copy);
    while (rc == SQLITE_OK && ledger_goes_on(ledger)) rc = sqlite3_backup_step(backup, PAGES);
    sqlite3_backup_finish(backup);
    if (rc != SQLITE_DONE)
      ledger_fail(ledger, "cannot copy the privacy ledger '%s': %s", ledger->path,
                  sqlite3_errstr(rc));
  }
  ledger_rollback(ledger);
  if (error_is_set(ledger->error)) {
    sqlite3_close(copy);
    return 0;
  }
  ledger->file = ledger->db;
  ledger->db = copy;
  memcpy(ledger->file_statements, ledger->statements, sizeof ledger->statements);
  memset(ledger->statements, 0, sizeof ledger->statements);
  ledger->overdrawn = 0;
  ledger_watch(ledger, copy);
  return ledger_begin_trial(ledger);
}

/* ---- creating a ledger (dp_init()) ----------------------------------------------------------- */

static int terms_match(struct ledger *ledger, const struct ledger_terms *terms) {
  if (!ledger_begin_reading(ledger)) return 0;
  if ((terms->protects && terms->protects != ledger->protects) ||
      (terms->adjacency && terms->adjacency != ledger->adjacency))
    ledger_fail(ledger,
                "the privacy ledger '%s' exists and protects a %s under %s adjacency, "
                "which cannot be changed",
                ledger->path, protects_name[ledger->protects], adjacency_name[ledger->adjacency]);
  char *unit = terms->unit ? ledger_unit(ledger) : 0;
  if (terms->unit && (!unit || strcmp(unit, terms->unit) != 0))
    ledger_fail(ledger,
                "the privacy ledger '%s' exists and its unit is '%s', which cannot be "
                "changed",
                ledger->path, unit ? unit : "");
  sqlite3_free(unit);
  ledger_rollback(ledger);
  return !error_is_set(ledger->error);
}

/* Opens the existing ledger of a database that has a marker, or in which none can be written. Fails
** if there is none, or with other terms. */
static int find_again(struct ledger *ledger, const struct ledger_terms *terms) {
  if (!ledger_ready(ledger)) return 0;
  if (terms->path) {
    char *path = resolve(ledger, terms->path);
    int same = path && (strcmp(path, ledger->path) == 0 || file_same(path, ledger->path));
    sqlite3_free(path);
    if (!same)
      return ledger_fail(ledger, "the privacy ledger of this database is '%s' (leave the path out)",
                         ledger->path);
  }
  return terms_match(ledger, terms);
}

/* Creates an empty file, with at most the permissions of the database. */
static enum creation create_file(struct ledger *ledger) {
  if (ledger_is_memory(ledger)) return FILE_EXISTS;
  const char *database = sqlite3_db_filename(ledger->host, "main");
  enum creation creation = file_create(ledger->path, host_in_memory(ledger) ? 0 : database);
  if (creation == FILE_DANGLES)
    ledger_fail(ledger,
                "cannot create the privacy ledger '%s': it is a symbolic link to a file that is "
                "not there (remove the link)",
                ledger->path);
  if (creation == FILE_REFUSED)
    ledger_fail(ledger,
                "cannot open the privacy ledger '%s': its file cannot be created with the "
                "permissions of the database (check the directory)",
                ledger->path);
  return creation;
}

/* Writes the marker and then commits the ledger. After a failure neither exists. */
static int create_fresh(struct ledger *ledger, const struct ledger_terms *terms, const char *name) {
  enum creation creation = create_file(ledger);
  int begun = !error_is_set(ledger->error) && connection_start(ledger) &&
              add_words(ledger, ledger->db) && connection_set_journal(ledger) &&
              ledger_begin(ledger);
  if (begun && connection_is_ledger(ledger)) {
    ledger_rollback(ledger); /* another process has created the ledger; use that one */
    connection_close(ledger);
    return ledger_create(ledger, terms);
  }
  if (begun &&
      (sqlite3_exec(ledger->db, ledger_sql, 0, 0, 0) == SQLITE_OK || ledger_fail_sqlite(ledger)) &&
      statement_run(ledger, CHANGES_TERMS,
                    "INSERT INTO dp_ledger(id, unit, protects, adjacency, created_at)"
                    " VALUES (lower(hex(randomblob(16))), ?, ?, ?, " STATEMENT_NOW ")",
                    "sss", terms->unit, protects_name[terms->protects],
                    adjacency_name[terms->adjacency]) &&
      connection_read_terms(ledger) && marker_write(ledger, ledger->id, name)) {
    if (ledger_commit(ledger)) return 1;
    sqlite3_exec(ledger->host, "DROP TABLE main.dp_ledger_id", 0, 0, 0);
  }
  /* A file that existed before, or that another process has locked, may be its ledger, and
  ** stays. */
  int busy =
      !begun && ledger->db &&
      (ledger->lock == LOCK_FILE_NONE || (sqlite3_errcode(ledger->db) & 0xff) == SQLITE_BUSY);
  statements_end(ledger);
  if (creation == FILE_CREATED && !busy && !file_has_content(ledger->path)) {
    char *journal = sqlite3_mprintf("%s-journal", ledger->path);
    file_delete(ledger->path);
    if (journal && !file_has_content(journal)) file_delete(journal);
    sqlite3_free(journal);
  }
  connection_close(ledger);
  return 0;
}

/* Returns whether the database file is encrypted, as SQLCipher does it: it then does not begin with
** SQLite's magic text. An empty file tells nothing. The host's own file handle reads the bytes,
** because closing another one would drop the host's locks. */
static int is_encrypted(struct ledger *ledger) {
  static const char magic[16] = "SQLite format 3";
  char bytes[sizeof magic];
  sqlite3_file *file = 0;
  int is_read =
      !host_in_memory(ledger) &&
      sqlite3_file_control(ledger->host, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
      file->pMethods && file->pMethods->xRead(file, bytes, sizeof bytes, 0) == SQLITE_OK;
  return is_read && memcmp(bytes, magic, sizeof magic) != 0;
}

int ledger_create(struct ledger *ledger, const struct ledger_terms *terms) {
  if (!ledger_wake(ledger, 1, 0)) return 0;
  struct marker marker;
  if (!json_present(&ledger->json) || !host_check(ledger) || !marker_read(ledger, "main", &marker))
    return 0;
  int marked = marker.id != 0;
  marker_clear(&marker);
  if (marked || ledger->read_only) return find_again(ledger, terms);
  if (sqlite3_table_column_metadata(ledger->host, "main", "dp_ledger", "protects", 0, 0, 0, 0, 0) ==
      SQLITE_OK)
    return ledger_fail(ledger, "this file is a privacy ledger (open its database)");
  /* Advice: In Python, connect with `isolation_level=None`. */
  if (!sqlite3_get_autocommit(ledger->host))
    return ledger_fail(ledger, "a ledger cannot be created inside a transaction (COMMIT first)");
  int names_memory = terms->path && strcmp(terms->path, MEMORY_PATH) == 0;
  if (terms->path && !names_memory && host_in_memory(ledger) && !path_is_absolute(terms->path))
    return ledger_fail(ledger, "path '%s' must be absolute for an in-memory database", terms->path);
  /* Advice: Leave `path` out, and the ledger is `<database>-ledger`. */
  if (names_memory && !host_in_memory(ledger))
    return ledger_fail(ledger, "a database in a file needs a ledger in a file, not '%s'",
                       terms->path);
  if (!terms->path && is_encrypted(ledger))
    return ledger_fail(ledger,
                       "the database is encrypted, and a ledger is not (choose a folder that "
                       "only you can read: dp_init('{\"path\":\"...\"}'))");
  if (!ledger_check_name(ledger, "unit", terms->unit)) return 0;
  char *name = terms->path ? sqlite3_mprintf("%s", terms->path) : default_name(ledger);
  char *path = name ? resolve(ledger, name) : 0;
  int created = 0;
  if (!path) {
    ledger_fail(ledger, "out of memory");
  } else if (use_path(ledger, path)) {
    created = terms_match(ledger, terms) && marker_write(ledger, ledger->id, name);
  } else if (!error_is_set(ledger->error)) { /* there is no ledger at this path */
    created = create_fresh(ledger, terms, name);
  }
  sqlite3_free(name);
  return created;
}
