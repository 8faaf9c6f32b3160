/*
** open.c: finds and opens the ledger of a database. The ledger is at the path in the marker, or
** beside the database.
** Tests: tests/ledger/test_files.py, tests/ledger/test_concurrency.py
*/
#include "ledger/open.h"

#include <string.h>

#include "ledger/connection.h"
#include "ledger/interrupt.h"
#include "ledger/lock.h"
#include "ledger/marker.h"
#include "ledger/schema.h"
#include "ledger/statements.h"
#include "os/file.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_id = {.sql = "SELECT id FROM dp_ledger"};

/* ---- where the ledger is --------------------------------------------------------------------- */

char *ledger_resolve(const struct ledger *ledger, const char *name) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *beside = database && !host_in_memory(ledger) ? path_name(database) : database;
  if (path_is_absolute(name) || strcmp(name, MEMORY_PATH) == 0 || beside == database)
    return sqlite3_mprintf("%s", name);
  return sqlite3_mprintf("%.*s%s", (int)(beside - database), database, name);
}

char *ledger_default_name(const struct ledger *ledger) {
  if (host_in_memory(ledger)) return sqlite3_mprintf("%s", MEMORY_PATH);
  return sqlite3_mprintf("%s-ledger", path_name(sqlite3_db_filename(ledger->host, "main")));
}

/*
** Returns whether two names mean the same file. If the file does not exist, the function compares
** its folder and its name.
*/
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

/*
** Returns whether `path` is one of a database's files: the database itself, a journal, its WAL, its
** WAL index or the lock of a ledger. Also returns 1 if the database is such a file of a database at
** `path`. Such a file can never be a ledger.
*/
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
  const char *database = sqlite3_db_filename(ledger->host, "main");
  return host_in_memory(ledger) ? MEMORY_PATH : database ? path_name(database) : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_existing(struct ledger *ledger) {
  int opened = connection_start(ledger) &&
               (connection_is_ledger(ledger) ||
                ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                            ledger->path)) &&
               connection_set_journal(ledger) && ledger_check_format(ledger) &&
               connection_read_terms(ledger);
  if (opened) {
    lock_drop(ledger);
  } else {
    connection_close(ledger);
  }
  return opened;
}

/*
** Waits for the lock of an empty file, because another process may be creating a ledger in this
** file.
*/
static int wait_for_creator(struct ledger *ledger) {
  if (!file_exists(ledger->path)) return 0;
  int waited = connection_start(ledger) && ledger_begin_trial(ledger);
  ledger_rollback(ledger);
  connection_close(ledger);
  return waited && file_has_content(ledger->path);
}

int ledger_use_path(struct ledger *ledger, char *path) {
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

/* ---- the marker ------------------------------------------------------------------------------ */

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

/* The result of look_into(). */
enum carried { NO_FILE, NO_LEDGER, OTHER_ID, SAME_ID, NOT_TOLD };

/*
** Returns whether a file of any format is the ledger with this id. The function opens a connection
** of its own.
*/
static enum carried look_into(struct ledger *ledger, const char *path, const char *id) {
  if (!file_exists(path)) return NO_FILE;
  if (!file_has_content(path)) return NO_LEDGER;
  if (file_is_hosts(path, sqlite3_db_filename(ledger->host, "main"))) return NO_LEDGER;
  struct error error = {0};
  struct ledger *other = ledger_new(ledger->host, ledger->kinds, &error);
  enum carried carried = NOT_TOLD;
  if (!other || !(other->path = sqlite3_mprintf("%s", path))) {
    ledger_fail(ledger, "out of memory");
  } else if (connection_open(other)) {
    if (connection_is_ledger(other))
      other->id = statement_text(other, statement_bind(other, &select_id, ""));
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

/*
** Returns whether the ledger has moved together with its database and is now beside the database.
** The marker's path says where the ledger was, and the marker's id identifies it. If two files have
** this id, they are copies of each other. The function then sets an error, because each copy would
** miss the charges to the other copy.
*/
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
  char *marked = ledger_resolve(ledger, marker->path), *name = ledger_default_name(ledger);
  char *beside = name ? ledger_resolve(ledger, name) : 0;
  if (!marked || !beside) ledger_fail(ledger, "out of memory");
  int moved = !error_is_set(ledger->error) && has_moved(ledger, marker, marked, beside);
  if (!error_is_set(ledger->error) &&
      !ledger_use_path(ledger, sqlite3_mprintf("%s", moved ? beside : marked)) &&
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
  error_clear(ledger->error);
  interrupt_heed(ledger, 1, 0);
  /* The code does not read the marker after a fork(). */
  if (ledger_is_inherited(ledger)) return connection_check(ledger);
  ledger_rollback(ledger); /* a transaction may be open since memory ran out */
  struct marker marker;
  if (!host_check(ledger) || !marker_read(ledger, "main", &marker)) return 0;
  char *name = marker.id ? 0 : ledger_default_name(ledger); /* without a marker: beside it */
  int found = marker.id ? open_marked(ledger, &marker)
                        : ledger_use_path(ledger, name ? ledger_resolve(ledger, name) : 0);
  sqlite3_free(name);
  marker_clear(&marker);
  if (found) return marker_check_attached(ledger);
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

/* ---- the end of a release -------------------------------------------------------------------- */

int ledger_resume(struct ledger *ledger) {
  error_clear(ledger->error);
  interrupt_heed(ledger, 0, 0);
  ledger_rollback(ledger);
  if (!ledger->db) return ledger_fail(ledger, "the privacy ledger was closed meanwhile");
  return connection_check(ledger);
}

int ledger_resume_patiently(struct ledger *ledger) {
  int resumed = ledger_resume(ledger);
  interrupt_heed(ledger, 1, 1);
  return resumed;
}
