/*
** open.c: owns the private connection: where the ledger is, opening and creating it, transactions.
**
** The ledger is a file of its own because a ledger on the host's connection is erased by the host's
** ROLLBACK after the value was seen, and a second connection to the SAME file deadlocks in
** rollback-journal mode. TRUNCATE and not WAL: a WAL ledger loses charges when a process forks or
** when only the main file is copied.
*/
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

#define BUSY_MILLISECONDS 10000 /* how long to wait for another connection's transaction ... */
#define BUSY_STEP         5     /* ... and how often to look */
#define APPLICATION_ID    1684432486

struct ledger *ledger_new(sqlite3 *host) {
  struct ledger *ledger = sqlite3_malloc(sizeof *ledger);
  if (ledger) memset(ledger, 0, sizeof *ledger);
  if (ledger) ledger->host = host;
  return ledger;
}

/* Whether the connection came here through a fork(). Then it is the parent's (L6): closing it or
** rolling back could undo a transaction that a thread of the parent has open in the same file. */
static int is_inherited(const struct ledger *ledger) {
  return ledger->db && !process_is_same(&ledger->process);
}

/* An inherited connection is forgotten, not closed. */
static void close_db(struct ledger *ledger) {
  if (is_inherited(ledger)) {
    memset(ledger->statements, 0, sizeof ledger->statements);
  } else {
    statements_finalize(ledger);
    sqlite3_close(ledger->db);
  }
  ledger->db = 0;
  sqlite3_free(ledger->id);
  ledger->id = 0;
}

static void set_path(struct ledger *ledger, char *path) {
  sqlite3_free(ledger->path);
  ledger->path = path;
  if (!path) ledger_fail(ledger, "out of memory");
}

void ledger_free(struct ledger *ledger) {
  if (!ledger) return;
  close_db(ledger);
  process_forget(&ledger->process);
  sqlite3_close(ledger->parser);
  sqlite3_free(ledger->path);
  ledger_clear(ledger);
  sqlite3_free(ledger);
}

int ledger_protects(const struct ledger *ledger) {
  return ledger->protects;
}

int ledger_adjacency(const struct ledger *ledger) {
  return ledger->adjacency;
}

const char *ledger_path(const struct ledger *ledger) {
  return ledger->path;
}

/* ---- where the ledger is --------------------------------------------------------------------- */

/* `name` beside the database, unless it is absolute or there is no directory to be beside. */
static char *resolve(const struct ledger *ledger, const char *name) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *slash = database && !host_in_memory(ledger) ? strrchr(database, '/') : 0;
  if (name[0] == '/' || strcmp(name, MEMORY_PATH) == 0 || !slash)
    return sqlite3_mprintf("%s", name);
  return sqlite3_mprintf("%.*s/%s", (int)(slash - database), database, name);
}

/* The name that a marker carries: relative to the database, so that both can be moved together. */
static char *default_name(const struct ledger *ledger) {
  if (host_in_memory(ledger)) return sqlite3_mprintf("%s", MEMORY_PATH);
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *slash = strrchr(database, '/');
  return sqlite3_mprintf("%s-ledger", slash ? slash + 1 : database);
}

static const char *database_name(const struct ledger *ledger) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *slash = database ? strrchr(database, '/') : 0;
  if (host_in_memory(ledger)) return MEMORY_PATH;
  return slash ? slash + 1 : database;
}

/* ---- the connection -------------------------------------------------------------------------- */

static int is_memory(const struct ledger *ledger) {
  return strcmp(ledger->path, MEMORY_PATH) == 0;
}

/* An absent or empty file is no ledger (a killed dp_init can leave an empty one). */
static int file_exists(const char *path) {
  struct stat status; /* never open(): closing the file would drop this process's locks on it */
  return stat(path, &status) == 0 && status.st_size > 0;
}

static int pragma(struct ledger *ledger, const char *sql) {
  return sqlite3_exec(ledger->db, sql, 0, 0, 0) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

/* Somebody may have turned the file into a WAL database; that must not pass unnoticed. */
static int set_journal(struct ledger *ledger) {
  char mode[16] = "";
  sqlite3_stmt *statement = 0;
  if (sqlite3_prepare_v2(ledger->db, "PRAGMA journal_mode = TRUNCATE", -1, &statement, 0) ==
          SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    sqlite3_snprintf(sizeof mode, mode, "%s", sqlite3_column_text(statement, 0));
  if (sqlite3_finalize(statement) != SQLITE_OK) return ledger_fail_sqlite(ledger);
  return strcmp(mode, is_memory(ledger) ? "memory" : "truncate") == 0 ||
         ledger_fail(ledger,
                     "the privacy ledger '%s' is in journal mode '%s', not truncate (close "
                     "other connections and try again)",
                     ledger->path, mode);
}

/* SQLite's own handler waits in whole seconds where it was built without usleep(). */
static int wait_for_lock(void *context, int calls) {
  (void)context;
  if (calls >= BUSY_MILLISECONDS / BUSY_STEP) return 0;
  struct timespec step = {0, BUSY_STEP * 1000000};
  nanosleep(&step, 0);
  return 1;
}

static int connect_db(struct ledger *ledger, int create) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX |
              (create ? SQLITE_OPEN_CREATE : 0);
  process_remember(&ledger->process);
  if (sqlite3_open_v2(ledger->path, &ledger->db, flags, 0) != SQLITE_OK) {
    ledger_fail(ledger, "cannot open the privacy ledger '%s': %s", ledger->path,
                ledger->db ? sqlite3_errmsg(ledger->db) : "out of memory");
    close_db(ledger);
    return 0;
  }
  sqlite3_busy_handler(ledger->db, wait_for_lock, 0);
  /* ROLLBACK is compiled now, because there may be no memory when it is needed. */
  return pragma(ledger, "PRAGMA synchronous = FULL") && statement_bind(ledger, ROLLBACK, "");
}

static int pragma_integer(struct ledger *ledger, const char *sql) {
  sqlite3_stmt *statement = 0;
  int value = -1;
  if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    value = sqlite3_column_int(statement, 0);
  if (sqlite3_finalize(statement) != SQLITE_OK) ledger_fail_sqlite(ledger);
  return value;
}

static const char *const protects_name[] = {"unit", "unit", "row"}; /* by LEDGER_UNITS, ... */
static const char *const adjacency_name[] = {"add-remove", "add-remove", "replace"};

/* Which of names[1] and names[2] a column holds; anything else is a damaged ledger. */
static int column_choice(struct ledger *ledger, sqlite3_stmt *row, int column,
                         const char *const names[3]) {
  char *text = column_copy(ledger, row, column);
  int choice = !text ? 0 : strcmp(text, names[1]) == 0 ? 1 : strcmp(text, names[2]) == 0 ? 2 : 0;
  sqlite3_free(text);
  if (!choice) ledger_fail_damaged(ledger, "dp_ledger");
  return choice;
}

int ledger_format(struct ledger *ledger) {
  return pragma_integer(ledger, "PRAGMA user_version");
}

static int check_application(struct ledger *ledger) {
  return pragma_integer(ledger, "PRAGMA application_id") == APPLICATION_ID ||
         ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                     ledger->path);
}

/* Reads the terms of an open connection. */
static int read_terms(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, TERMS_READ, "");
  if (statement_row(ledger, row)) {
    sqlite3_free(ledger->id);
    ledger->id = column_copy(ledger, row, 0);
    ledger->protects = column_choice(ledger, row, 1, protects_name);
    ledger->adjacency = column_choice(ledger, row, 2, adjacency_name);
    sqlite3_reset(row);
  }
  if (!ledger->error && !ledger->id)
    return ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                       ledger->path);
  return !ledger->error;
}

/* L6, and a file that was deleted or replaced under an open connection. */
static int check_connection(struct ledger *ledger) {
  if (is_inherited(ledger))
    return ledger_fail(ledger, "the privacy ledger was opened before fork() (reconnect)");
  int moved = 0;
  if (!is_memory(ledger) &&
      sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
      moved)
    return ledger_fail(ledger,
                       "the privacy ledger '%s' was moved or deleted (restore it and "
                       "reconnect)",
                       ledger->path);
  return 1;
}

static int open_existing(struct ledger *ledger) {
  /* A file that is no ledger must not be touched. */
  if (connect_db(ledger, 0) && check_application(ledger) && set_journal(ledger) &&
      ledger_migrate(ledger) && read_terms(ledger))
    return 1;
  close_db(ledger);
  return 0;
}

/* An empty file may be a ledger that another process is about to commit: waits for its lock. */
static int wait_for_creator(struct ledger *ledger) {
  if (access(ledger->path, F_OK) != 0) return 0;
  int waited = connect_db(ledger, 0) && ledger_begin(ledger);
  ledger_rollback(ledger);
  close_db(ledger);
  return waited && file_exists(ledger->path);
}

/* Makes `path` (taken over) the open ledger. An in-memory ledger cannot be opened, only kept. */
static int use_path(struct ledger *ledger, char *path) {
  if (!path) return ledger_fail(ledger, "out of memory");
  if (ledger->db && ledger->path && strcmp(ledger->path, path) == 0) {
    sqlite3_free(path);
    return check_connection(ledger);
  }
  close_db(ledger);
  set_path(ledger, path);
  if (is_memory(ledger)) return 0;
  if (!file_exists(ledger->path) && !wait_for_creator(ledger)) return 0;
  return open_existing(ledger);
}

static int fail_missing(struct ledger *ledger) {
  return ledger_fail(ledger,
                     "the privacy ledger '%s' of this database is missing (restore it, or "
                     "DROP TABLE dp_ledger_id to start a new budget)",
                     ledger->path);
}

/* Opens the ledger that the marker names and checks that it is the one (L3). */
static int open_marked(struct ledger *ledger, const struct marker *marker) {
  if (!use_path(ledger, resolve(ledger, marker->path))) return fail_missing(ledger);
  if (strcmp(ledger->id, marker->id) != 0)
    return ledger_fail(ledger,
                       "'%s' is the privacy ledger of another database (restore the right "
                       "one, or move this one away and DROP TABLE dp_ledger_id to start a "
                       "new budget)",
                       ledger->path);
  return 1;
}

/* Without a marker (a read-only database): the path given to dp_init() here, or the default one. */
static char *unmarked_name(const struct ledger *ledger) {
  return ledger->named_path ? sqlite3_mprintf("%s", ledger->path) : default_name(ledger);
}

static int open_unmarked(struct ledger *ledger) {
  char *name = unmarked_name(ledger);
  char *path = name ? resolve(ledger, name) : 0;
  sqlite3_free(name);
  return use_path(ledger, path);
}

int ledger_ready(struct ledger *ledger) {
  ledger_clear(ledger);
  if (is_inherited(ledger)) return check_connection(ledger); /* whatever the marker says */
  ledger_rollback(ledger); /* of what could not be rolled back when memory ran out, if anything */
  struct marker marker;
  if (!marker_read(ledger, "main", &marker)) return 0;
  int found = marker.id ? open_marked(ledger, &marker) : open_unmarked(ledger);
  marker_clear(&marker);
  if (!found)
    return ledger_fail(ledger, "no privacy ledger for '%s' (run SELECT dp_init())",
                       database_name(ledger));
  return marker_check_attached(ledger);
}

int ledger_resume(struct ledger *ledger) {
  ledger_clear(ledger);
  ledger_rollback(ledger);
  if (!ledger->db) return ledger_fail(ledger, "the privacy ledger was closed meanwhile");
  return check_connection(ledger);
}

/* ---- creation -------------------------------------------------------------------------------- */

/* The schema and the terms, in the open transaction. */
static int write_schema(struct ledger *ledger, const struct ledger_terms *terms) {
  return ledger_make_schema(ledger) &&
         statement_run(ledger, TERMS_INSERT, "sss", terms->unit, protects_name[terms->protects],
                       adjacency_name[terms->adjacency]) &&
         read_terms(ledger);
}

/* Whether an existing ledger is what dp_init() asks for. */
static int terms_match(struct ledger *ledger, const struct ledger_terms *terms) {
  if ((terms->protects && terms->protects != ledger->protects) ||
      (terms->adjacency && terms->adjacency != ledger->adjacency))
    return ledger_fail(ledger,
                       "the privacy ledger '%s' exists and protects a %s under %s adjacency, "
                       "which cannot be changed",
                       ledger->path, protects_name[ledger->protects],
                       adjacency_name[ledger->adjacency]);
  sqlite3_stmt *row = statement_bind(ledger, TERMS_READ, "");
  if (statement_row(ledger, row)) {
    const char *unit = (const char *)sqlite3_column_text(row, 3);
    if (terms->unit && (!unit || strcmp(unit, terms->unit) != 0))
      ledger_fail(ledger,
                  "the privacy ledger '%s' exists and its unit is '%s', which cannot be "
                  "changed",
                  ledger->path, unit ? unit : "");
    sqlite3_reset(row);
  }
  return !ledger->error;
}

/* A marker is there: the ledger must be too, and be the same as the one asked for. */
static int create_again(struct ledger *ledger, const struct ledger_terms *terms) {
  if (!ledger_ready(ledger)) return 0;
  if (terms->path) {
    char *path = resolve(ledger, terms->path);
    int same = path && strcmp(path, ledger->path) == 0;
    sqlite3_free(path);
    if (!same)
      return ledger_fail(ledger, "the privacy ledger of this database is '%s' (leave the path out)",
                         ledger->path);
  }
  return terms_match(ledger, terms);
}

/* What a failed creation leaves: a file of no bytes, and its journal. */
static void remove_empty(struct ledger *ledger) {
  char *journal = sqlite3_mprintf("%s-journal", ledger->path);
  if (!is_memory(ledger) && !file_exists(ledger->path)) {
    unlink(ledger->path);
    if (journal && !file_exists(journal)) unlink(journal);
  }
  sqlite3_free(journal);
}

/* Marker first, then the ledger's commit; a failure undoes both. */
static int create_fresh(struct ledger *ledger, const struct ledger_terms *terms, const char *name,
                        int mark) {
  int existed = access(ledger->path, F_OK) == 0;
  int begun = connect_db(ledger, 1) && set_journal(ledger) && ledger_begin(ledger);
  if (begun && pragma_integer(ledger, "PRAGMA application_id") == APPLICATION_ID) {
    ledger_rollback(ledger); /* another process was faster: its ledger is the one */
    close_db(ledger);
    return ledger_create(ledger, terms);
  }
  if (begun && write_schema(ledger, terms) && (!mark || marker_write(ledger, ledger->id, name))) {
    if (ledger_commit(ledger)) return 1;
    if (mark) marker_drop(ledger);
  }
  ledger_rollback(ledger);
  close_db(ledger);
  if (begun && !existed) remove_empty(ledger); /* otherwise it may be another process's */
  return 0;
}

static int create_named(struct ledger *ledger, const struct ledger_terms *terms, const char *name,
                        int mark) {
  char *path = resolve(ledger, name);
  if (!path) return ledger_fail(ledger, "out of memory");
  if (!use_path(ledger, path)) /* there is none, or it could not be read */
    return !ledger->error && create_fresh(ledger, terms, name, mark);
  return terms_match(ledger, terms) && (!mark || marker_write(ledger, ledger->id, name));
}

/* The path option: never the database itself, and absolute where there is nothing to be beside. */
static int check_path(struct ledger *ledger, const char *path) {
  if (host_in_memory(ledger) && path[0] != '/' && strcmp(path, MEMORY_PATH) != 0)
    return ledger_fail(ledger, "path '%s' must be absolute for an in-memory database", path);
  if (!host_in_memory(ledger) && strcmp(path, MEMORY_PATH) == 0)
    return ledger_fail(ledger, "a database in a file needs a ledger in a file, not '%s'", path);
  char *full = resolve(ledger, path);
  int same = full && strcmp(full, sqlite3_db_filename(ledger->host, "main")) == 0;
  sqlite3_free(full);
  return !same || ledger_fail(ledger,
                              "path '%s' is the database itself (a ledger is a file of its "
                              "own)",
                              path);
}

int ledger_create(struct ledger *ledger, const struct ledger_terms *terms) {
  ledger_clear(ledger);
  if (is_inherited(ledger)) return check_connection(ledger);
  struct marker marker;
  if (!json_present(ledger) || !marker_read(ledger, "main", &marker)) return 0;
  int marked = marker.id != 0;
  marker_clear(&marker);
  if (marked) return create_again(ledger, terms);
  int mark = sqlite3_db_readonly(ledger->host, "main") == 0;
  if (mark && !sqlite3_get_autocommit(ledger->host))
    return ledger_fail(ledger, "a ledger cannot be created inside a transaction (COMMIT first)");
  if (terms->path && !check_path(ledger, terms->path)) return 0;
  int named = terms->path || ledger->named_path;
  char *name = terms->path ? sqlite3_mprintf("%s", terms->path) : unmarked_name(ledger);
  if (!name) return ledger_fail(ledger, "out of memory");
  int created = create_named(ledger, terms, name, mark);
  sqlite3_free(name);
  ledger->named_path = created && named;
  return created;
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* A BEGIN that fails for want of memory can leave a transaction open. */
static int begin_with(struct ledger *ledger, enum statement which) {
  if (statement_run(ledger, which, "")) return 1;
  ledger_rollback(ledger);
  return 0;
}

int ledger_begin(struct ledger *ledger) {
  return begin_with(ledger, BEGIN_WRITE);
}

int ledger_begin_reading(struct ledger *ledger) {
  return begin_with(ledger, BEGIN_READ);
}

int ledger_commit(struct ledger *ledger) {
  if (!ledger->error) check_connection(ledger);
  if (statement_run(ledger, COMMIT, "")) return 1;
  ledger_rollback(ledger);
  return 0;
}

void ledger_rollback(struct ledger *ledger) {
  if (!ledger->db || is_inherited(ledger) || sqlite3_get_autocommit(ledger->db)) return;
  for (int i = 0; i < STATEMENTS; i++) sqlite3_reset(ledger->statements[i]);
  sqlite3_step(ledger->statements[ROLLBACK]); /* the error that led here is already recorded */
  sqlite3_reset(ledger->statements[ROLLBACK]);
}
