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
  if (rc == SQLITE_OK && strcmp(path, ":memory:") == 0)
    rc = sqlite3_exec(*db, in_memory, 0, 0, 0);
  return rc;
}
