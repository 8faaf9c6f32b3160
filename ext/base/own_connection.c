/* own_connection.c: see own_connection.h. All settings are listed here once. A caller that needs
** another value sets it afterwards.
** Tests: tests/base/test_settings.py */
#include "base/own_connection.h"

#include <limits.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* Options of newer versions of SQLite than those of the headers. */
#define REVERSE_SCANORDER    1019
#define ENABLE_ATTACH_CREATE 1020
#define ENABLE_ATTACH_WRITE  1021
#define ENABLE_COMMENTS      1022
#define FP_DIGITS            1023

/* The options of sqlite3_db_config(). An older SQLite that does not know one behaves like this. */
static const int options[][2] = {{SQLITE_DBCONFIG_ENABLE_FKEY, 0},
                                 {SQLITE_DBCONFIG_ENABLE_TRIGGER, 1},
                                 {SQLITE_DBCONFIG_ENABLE_VIEW, 1},
                                 {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
                                 {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                 {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0},
                                 {SQLITE_DBCONFIG_ENABLE_QPSG, 0},
                                 {SQLITE_DBCONFIG_TRIGGER_EQP, 0},
                                 {SQLITE_DBCONFIG_RESET_DATABASE, 0},
                                 {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
                                 {SQLITE_DBCONFIG_DEFENSIVE, 1},
                                 {SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 0},
                                 {SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, 0},
                                 {SQLITE_DBCONFIG_DQS_DML, 0},
                                 {SQLITE_DBCONFIG_DQS_DDL, 0},
                                 {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                 {REVERSE_SCANORDER, 0},
                                 {ENABLE_ATTACH_CREATE, 1},
                                 {ENABLE_ATTACH_WRITE, 1},
                                 {ENABLE_COMMENTS, 1},
                                 {FP_DIGITS, 17}};

/* The pragmas that have no such option and that SQLite can set without reading a file. */
static const char pragmas[] = "PRAGMA encoding = 'UTF-8';"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA locking_mode = NORMAL;"
                              "PRAGMA recursive_triggers = OFF;"
                              "PRAGMA reverse_unordered_selects = OFF;"
                              "PRAGMA automatic_index = ON;"
                              "PRAGMA ignore_check_constraints = OFF;"
                              "PRAGMA cell_size_check = OFF;"
                              "PRAGMA query_only = OFF;"
                              "PRAGMA read_uncommitted = OFF;"
                              "PRAGMA count_changes = OFF;"
                              "PRAGMA empty_result_callbacks = OFF;"
                              "PRAGMA short_column_names = ON;"
                              "PRAGMA full_column_names = OFF";

/* What SQLite sets when it has read the schema: one that is in memory. */
static const char in_memory[] = "PRAGMA journal_mode = MEMORY;"
                                "PRAGMA max_page_count = 2147483646";

/* Sets every option. Fails if SQLite knows an option and does not take the value. */
static int set_options(sqlite3 *db) {
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    int now = -1;
    if (sqlite3_db_config(db, options[i][0], options[i][1], &now) == SQLITE_OK &&
        now != options[i][1])
      return SQLITE_ERROR;
  }
  return SQLITE_OK;
}

/* Sets every limit to the most that this build allows, but admits no threads. */
static void set_limits(sqlite3 *db) {
  for (int limit = 0; sqlite3_limit(db, limit, -1) >= 0; limit++)
    sqlite3_limit(db, limit, limit == SQLITE_LIMIT_WORKER_THREADS ? 0 : INT_MAX);
}

int own_connection_open(sqlite3 **db, const char *path, int flags, const char *vfs) {
  int rc = sqlite3_open_v2(path, db, flags, vfs);
  if (rc != SQLITE_OK) return rc;
  set_limits(*db);
  sqlite3_extended_result_codes(*db, 0);
  sqlite3_busy_timeout(*db, 0);
  rc = set_options(*db);
  if (rc == SQLITE_OK) rc = sqlite3_exec(*db, pragmas, 0, 0, 0);
  if (rc == SQLITE_OK && strcmp(path, ":memory:") == 0) rc = sqlite3_exec(*db, in_memory, 0, 0, 0);
  return rc;
}

/* ---- the file of a connection, once more ----------------------------------------------------- */

/* Appends a text in which only letters, digits and a few signs stand for themselves. */
static void append_encoded(sqlite3_str *uri, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._~-";
  for (; *text; text++) {
    if (strchr(plain, *text)) {
      sqlite3_str_appendchar(uri, 1, *text);
    } else {
      sqlite3_str_appendf(uri, "%%%02x", (unsigned char)*text);
    }
  }
}

/* Returns a URI with the parameters of `path`, a name that sqlite3_db_filename() returned. The VFS
** and the flags of sqlite3_open_v2() take the place of three of the parameters. */
static char *uri_of(const char *path) {
  sqlite3_str *uri = sqlite3_str_new(0);
  const char *key;
  char sign = '?';
  sqlite3_str_appendall(uri, *path == '/' ? "file:" : "file:/");
  append_encoded(uri, path);
  for (int i = 0; (key = sqlite3_uri_key(path, i)) != 0; i++) {
    if (strcmp(key, "mode") == 0 || strcmp(key, "cache") == 0 || strcmp(key, "vfs") == 0) continue;
    sqlite3_str_appendchar(uri, 1, sign);
    append_encoded(uri, key);
    sqlite3_str_appendchar(uri, 1, '=');
    append_encoded(uri, sqlite3_uri_parameter(path, key));
    sign = '&';
  }
  return sqlite3_str_finish(uri);
}

int own_connection_again(sqlite3 **opened, sqlite3 *db, int flags, struct error *error) {
  sqlite3_vfs *vfs = 0;
  const char *path = sqlite3_db_filename(db, "main");
  *opened = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs)
    return error_set(error, "cannot open the database again: its VFS is unknown");
  char *uri = uri_of(path);
  if (!uri) return error_set_memory(error);
  flags |= SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI;
  if (own_connection_open(opened, uri, flags, vfs->zName) != SQLITE_OK) {
    error_set(error, "cannot open the database again: %s",
              *opened ? sqlite3_errmsg(*opened) : "out of memory");
    sqlite3_close_v2(*opened);
    *opened = 0;
  } else {
    int trusts = 0;
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1, &trusts);
    sqlite3_db_config(*opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, trusts, (int *)0);
  }
  sqlite3_free(uri);
  return *opened != 0;
}
