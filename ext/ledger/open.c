/*
** open.c: owns the private connection. Finds, opens and creates the ledger, and runs transactions.
**
** The ledger is a file of its own for two reasons. If it were written on the host's connection, a
** ROLLBACK of the host could erase a charge after the value was seen. A second connection to the
** host's own file would deadlock in rollback-journal mode. The journal mode is TRUNCATE: in WAL
** mode a ledger loses charges when a process forks, or when somebody copies the main file alone.
*/
#include <fenv.h>
#include <string.h>

#include "ledger/internal.h"
#include "os/file.h"
#include "os/lock_file.h"

SQLITE_EXTENSION_INIT3

#define APPLICATION_ID 1684432486

static int go_on(void *ledger) {
  return interrupt_check(ledger);
}

static void stop_asking(void *ledger) {
  interrupt_end(ledger);
}

struct ledger *ledger_new(sqlite3 *host, struct error *error) {
  struct ledger *ledger = sqlite3_malloc(sizeof *ledger);
  if (!ledger) return 0;
  memset(ledger, 0, sizeof *ledger);
  ledger->host = host;
  ledger->error = error;
  ledger->json = (struct json){0, error, go_on, stop_asking, ledger};
  ledger->lock = LOCK_FILE_NONE;
  ledger->rounding = -1;
  return ledger;
}

/*
** Whether this process got the connection by fork(). It then belongs to the parent (L6): closing it
** or rolling back could undo a transaction that a thread of the parent has open in the same file.
*/
static int is_inherited(const struct ledger *ledger) {
  return ledger->db && !process_is_same(&ledger->process);
}

int ledger_is_memory(const struct ledger *ledger) {
  return strcmp(ledger->path, MEMORY_PATH) == 0;
}

/*
** Whether the file belongs to another application and must not be touched. Reads the file directly,
** without SQLite's locks and journals.
*/
static int is_foreign(struct ledger *ledger) {
  sqlite3_file *file = 0;
  unsigned char id[4] = {0};
  if (ledger_is_memory(ledger) ||
      sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      !file->pMethods || file->pMethods->xRead(file, id, sizeof id, 68) != SQLITE_OK)
    return 0; /* an empty file too: another process may be writing a ledger */
  return ((unsigned)id[0] << 24 | (unsigned)id[1] << 16 | (unsigned)id[2] << 8 | id[3]) !=
         APPLICATION_ID;
}

/*
** Forgets an inherited connection without closing it. Closes any other connection under the lock,
** because closing a file drops the locks that other copies of SQLite in this process have on it.
*/
static void close_db(struct ledger *ledger) {
  copy_end(ledger);
  interrupt_end(ledger);
  if (is_inherited(ledger)) {
    memset(ledger->statements, 0, sizeof ledger->statements);
  } else if (ledger->db) {
    struct error error = error_take(ledger->error);
    int heeds_host = ledger->heeds_host;
    ledger->heeds_host = 0;
    if (file_has_content(ledger->path) && !is_foreign(ledger)) lock_take(ledger, 0);
    statements_finalize(ledger);
    sqlite3_close(ledger->db);
    error_restore(ledger->error, error);
    ledger->heeds_host = heeds_host;
  }
  lock_drop(ledger);
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
  json_close(&ledger->json);
  sqlite3_free(ledger->path);
  seal_forget(ledger);
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

/*
** The path of `name` in the database's directory. An absolute name stays as it is; so does any name
** if the database has no directory.
*/
static char *resolve(const struct ledger *ledger, const char *name) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *beside = database && !host_in_memory(ledger) ? path_name(database) : database;
  if (path_is_absolute(name) || strcmp(name, MEMORY_PATH) == 0 || beside == database)
    return sqlite3_mprintf("%s", name);
  return sqlite3_mprintf("%.*s%s", (int)(beside - database), database, name);
}

/*
** The path that a marker stores. It is relative to the database, so that both files can move
** together.
*/
static char *default_name(const struct ledger *ledger) {
  if (host_in_memory(ledger)) return sqlite3_mprintf("%s", MEMORY_PATH);
  return sqlite3_mprintf("%s-ledger", path_name(sqlite3_db_filename(ledger->host, "main")));
}

static const char *database_name(const struct ledger *ledger) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  return host_in_memory(ledger) ? MEMORY_PATH : database ? path_name(database) : 0;
}

/* ---- the connection -------------------------------------------------------------------------- */

static int pragma(struct ledger *ledger, const char *sql) {
  return sqlite3_exec(ledger->db, sql, 0, 0, 0) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

/* Runs a pragma that sets or reads the journal mode, and returns the mode. */
static int run_journal_mode(struct ledger *ledger, const char *sql, char mode[16]) {
  sqlite3_stmt *statement = 0;
  *mode = 0;
  if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    sqlite3_snprintf(16, mode, "%s", sqlite3_column_text(statement, 0));
  return sqlite3_finalize(statement) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

/*
** Sets journal mode TRUNCATE, or fails. If somebody has turned the file into a WAL database,
** changing it back writes to it, which a host that may only read must not do (L7). Any other change
** of mode does not write to the file.
*/
static int set_journal(struct ledger *ledger) {
  char mode[16];
  if (!run_journal_mode(ledger, "PRAGMA journal_mode", mode)) return 0;
  if ((strcmp(mode, "wal") != 0 || !ledger->read_only) &&
      !run_journal_mode(ledger, "PRAGMA journal_mode = TRUNCATE", mode))
    return 0;
  return strcmp(mode, ledger_is_memory(ledger) ? "memory" : "truncate") == 0 ||
         ledger_fail(ledger,
                     "the privacy ledger '%s' is in journal mode '%s', not truncate (close "
                     "other connections and try again%s)",
                     ledger->path, mode,
                     ledger->read_only ? ", where the database can be written" : "");
}

/* A busy handler. SQLite's own handler waits whole seconds if SQLite was built without usleep(). */
static int wait_for_others(void *context, int calls) {
  struct ledger *ledger = context;
  if (calls == 0) wait_start(ledger);
  return wait_moment(ledger, calls);
}

/*
** The platform's own VFS, whatever the host's default VFS is. Connections that lock in different
** ways do not see each other's locks.
*/
/* Opens the file and takes its lock, which every read of the file needs. */
static int open_db(struct ledger *ledger) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  process_remember(&ledger->process);
  const char *vfs = ledger_is_memory(ledger) ? 0 : FILE_VFS;
  if (vfs && !sqlite3_vfs_find(vfs))
    return ledger_fail(ledger,
                       "this SQLite has no VFS '%s', with which ledgers are locked (use another "
                       "build of SQLite)",
                       vfs);
  if (sqlite3_open_v2(ledger->path, &ledger->db, flags, vfs) != SQLITE_OK) {
    ledger_fail(ledger, "cannot open the privacy ledger '%s': %s", ledger->path,
                ledger->db ? sqlite3_errmsg(ledger->db) : "out of memory");
    close_db(ledger);
    return 0;
  }
  sqlite3_busy_handler(ledger->db, wait_for_others, ledger);
  return is_foreign(ledger) || lock_take(ledger, 0);
}

static int connect_db(struct ledger *ledger) {
  if (!open_db(ledger)) return 0;
  /* Prepare ROLLBACK now, because memory may have run out when it is needed. */
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

/* Indexed by LEDGER_UNITS, LEDGER_ROWS and LEDGER_ADD_REMOVE, LEDGER_REPLACE. */
static const char *const protects_name[] = {"unit", "unit", "row"};
static const char *const adjacency_name[] = {"add-remove", "add-remove", "replace"};

/*
** The index of the name, 1 or 2, that a column holds. Any other value means that the ledger is
** damaged.
*/
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

struct terms {
  char *id;
  int protects, adjacency, unchecked;
};

/*
** Reads the row of dp_ledger. Returns 0 if there is none or on failure. Free the id with
** sqlite3_free.
*/
static int terms_read(struct ledger *ledger, struct terms *terms) {
  *terms = (struct terms){0};
  sqlite3_stmt *row = statement_bind(ledger, TERMS_READ, "");
  if (!statement_row(ledger, row)) return 0;
  terms->id = column_copy(ledger, row, 0);
  terms->protects = column_choice(ledger, row, 1, protects_name);
  terms->adjacency = column_choice(ledger, row, 2, adjacency_name);
  terms->unchecked = sqlite3_column_int(row, 4);
  sqlite3_reset(row);
  if (terms->id && !error_is_set(ledger->error)) return 1;
  sqlite3_free(terms->id);
  terms->id = 0;
  return 0;
}

/* Reads the terms of an open connection. */
static int read_terms(struct ledger *ledger) {
  struct terms terms;
  if (!terms_read(ledger, &terms))
    return ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                       ledger->path);
  sqlite3_free(ledger->id);
  ledger->id = terms.id;
  ledger->protects = terms.protects;
  ledger->adjacency = terms.adjacency;
  ledger->unchecked = terms.unchecked;
  return 1;
}

/* Checks L6, and that the file was not deleted or replaced while the connection was open. */
static int check_connection(struct ledger *ledger) {
  if (is_inherited(ledger))
    return ledger_fail(ledger, "the privacy ledger was opened before fork() (reconnect)");
  int moved = 0;
  if (!ledger_is_memory(ledger) &&
      sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
      moved)
    return ledger_fail(ledger,
                       "the privacy ledger '%s' was moved or deleted (restore it and "
                       "reconnect)",
                       ledger->path);
  return 1;
}

static int open_existing(struct ledger *ledger) {
  /* A migration is a transaction, so it releases the lock. */
  int opened = connect_db(ledger) && check_application(ledger) && set_journal(ledger) &&
               ledger_migrate(ledger) && lock_take(ledger, 0) && read_terms(ledger);
  if (opened) {
    lock_drop(ledger);
  } else {
    close_db(ledger);
  }
  return opened;
}

/*
** Waits for the lock of an empty file, because another process may be about to commit a ledger to
** it.
*/
static int wait_for_creator(struct ledger *ledger) {
  if (!file_exists(ledger->path)) return 0;
  int waited = connect_db(ledger) && ledger_begin_trial(ledger);
  ledger_rollback(ledger);
  close_db(ledger);
  return waited && file_has_content(ledger->path);
}

/*
** Makes `path` the open ledger, and takes ownership of the string. An in-memory ledger cannot be
** opened again, only kept. The function refuses the files of the host's database, because closing
** such a file would drop the host's own locks.
*/
static int use_path(struct ledger *ledger, char *path) {
  if (!path) return ledger_fail(ledger, "out of memory");
  if (ledger->db && ledger->path && strcmp(ledger->path, path) == 0) {
    sqlite3_free(path);
    return check_connection(ledger);
  }
  close_db(ledger);
  set_path(ledger, path);
  if (ledger_is_memory(ledger)) return 0;
  if (!host_in_memory(ledger) &&
      file_is_hosts(ledger->path, sqlite3_db_filename(ledger->host, "main")))
    return ledger_fail(ledger,
                       "path '%s' is a file of the database itself (a ledger is a file of its own)",
                       ledger->path);
  if (!file_has_content(ledger->path) && !wait_for_creator(ledger)) return 0;
  return open_existing(ledger);
}

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

/* The result of looking for a marker's ledger in a file. */
enum carried { NO_FILE, NO_LEDGER, OTHER_ID, SAME_ID, NOT_TOLD };

/* Looks for the ledger with this id in a file of any format, on a connection of its own. */
static enum carried look_into(struct ledger *ledger, const char *path, const char *id) {
  if (!file_exists(path)) return NO_FILE;
  if (!file_has_content(path)) return NO_LEDGER;
  if (file_is_hosts(path, sqlite3_db_filename(ledger->host, "main"))) return NO_LEDGER;
  struct error error = {0};
  struct ledger *other = ledger_new(ledger->host, &error);
  enum carried carried = NOT_TOLD;
  if (!other || !(other->path = sqlite3_mprintf("%s", path))) {
    ledger_fail(ledger, "out of memory");
  } else if (open_db(other)) {
    int is_ledger = pragma_integer(other, "PRAGMA application_id") == APPLICATION_ID;
    sqlite3_stmt *row = is_ledger ? statement_bind(other, TERMS_READ, "") : 0;
    if (statement_row(other, row)) other->id = column_copy(other, row, 0);
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
** Whether the ledger has moved together with its database and is now the file beside it. The
** marker's path says where the ledger was, and the marker's id identifies it. Two files with that
** id are copies of each other. The function refuses them, because a charge to one would miss what
** the other has paid.
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
  return ledger_fail(ledger,
                     "'%s' and '%s' are copies of one privacy ledger, and this database may be "
                     "charged to one only (keep the one that was charged last, and move the other "
                     "away)",
                     marked, beside);
}

/* Opens the ledger that the marker names and checks its id (L3). */
static int open_marked(struct ledger *ledger, const struct marker *marker) {
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

/* Without a marker, the ledger is the one beside the database. */
static int open_unmarked(struct ledger *ledger) {
  char *name = default_name(ledger);
  char *path = name ? resolve(ledger, name) : 0;
  sqlite3_free(name);
  return use_path(ledger, path);
}

int ledger_ready(struct ledger *ledger) {
  error_clear(ledger->error);
  interrupt_heed(ledger, 1, 0);
  if (is_inherited(ledger)) return check_connection(ledger); /* do not read the marker */
  ledger_rollback(ledger); /* a transaction that was left when memory ran out */
  struct marker marker;
  if (!host_check(ledger) || !marker_read(ledger, "main", &marker)) return 0;
  int found = marker.id ? open_marked(ledger, &marker) : open_unmarked(ledger);
  marker_clear(&marker);
  if (found) return marker_check_attached(ledger);
  if (!ledger->read_only)
    return ledger_fail(ledger, "no privacy ledger for '%s' (run SELECT dp_init())",
                       database_name(ledger));
  return ledger_fail(ledger,
                     "no privacy ledger for '%s', and this connection cannot write its database: "
                     "%s (run SELECT dp_init() on a connection that can)",
                     database_name(ledger), ledger->read_only);
}

int ledger_resume(struct ledger *ledger) {
  error_clear(ledger->error);
  interrupt_heed(ledger, 0, 0);
  ledger_rollback(ledger);
  if (!ledger->db) return ledger_fail(ledger, "the privacy ledger was closed meanwhile");
  return check_connection(ledger);
}

/* Rolls back if a transaction is open. Keeps the lock. */
static void end_transaction(struct ledger *ledger) {
  if (!ledger->db || is_inherited(ledger) || sqlite3_get_autocommit(ledger->db)) return;
  for (int i = 0; i < STATEMENTS; i++) sqlite3_reset(ledger->statements[i]);
  sqlite3_step(ledger->statements[ROLLBACK]); /* the first error is recorded already */
  sqlite3_reset(ledger->statements[ROLLBACK]);
}

int ledger_resume_patiently(struct ledger *ledger) {
  int resumed = ledger_resume(ledger);
  interrupt_heed(ledger, 1, 1);
  return resumed;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Writes the schema and the terms, in the open transaction. */
static int write_schema(struct ledger *ledger, const struct ledger_terms *terms) {
  return ledger_make_schema(ledger) &&
         statement_run(ledger, TERMS_INSERT, "sssi", terms->unit, protects_name[terms->protects],
                       adjacency_name[terms->adjacency], (int64_t)terms->unchecked) &&
         read_terms(ledger);
}

/* Whether the stored terms are these. In a transaction, so that the lock is held (lock.c). */
static int are_terms(struct ledger *ledger, const struct ledger_terms *terms) {
  if ((terms->protects && terms->protects != ledger->protects) ||
      (terms->adjacency && terms->adjacency != ledger->adjacency))
    return ledger_fail(ledger,
                       "the privacy ledger '%s' exists and protects a %s under %s adjacency, "
                       "which cannot be changed",
                       ledger->path, protects_name[ledger->protects],
                       adjacency_name[ledger->adjacency]);
  if (terms->unchecked && !ledger->unchecked)
    return ledger_fail(ledger,
                       "the privacy ledger '%s' exists and checks every query against its policy, "
                       "which cannot be changed",
                       ledger->path);
  if (!terms->unit) return 1;
  sqlite3_stmt *row = statement_bind(ledger, TERMS_READ, "");
  if (statement_row(ledger, row)) {
    const char *unit = (const char *)sqlite3_column_text(row, 3);
    if (!unit || strcmp(unit, terms->unit) != 0)
      ledger_fail(ledger,
                  "the privacy ledger '%s' exists and its unit is '%s', which cannot be "
                  "changed",
                  ledger->path, unit ? unit : "");
    sqlite3_reset(row);
  }
  return !error_is_set(ledger->error);
}

/* Whether an existing ledger has the terms of this dp_init(). */
static int terms_match(struct ledger *ledger, const struct ledger_terms *terms) {
  int same = ledger_begin_reading(ledger) && are_terms(ledger, terms);
  ledger_rollback(ledger);
  return same;
}

/*
** For a database that has a marker, or cannot get one: the ledger must exist and have these terms.
*/
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

/* Removes the empty file and the journal that a failed creation leaves. */
static void remove_empty(struct ledger *ledger) {
  char *journal = sqlite3_mprintf("%s-journal", ledger->path);
  if (!ledger_is_memory(ledger) && !file_has_content(ledger->path)) {
    file_delete(ledger->path);
    if (journal && !file_has_content(journal)) file_delete(journal);
  }
  sqlite3_free(journal);
}

/*
** Creates an empty file for the new ledger. Its permissions are no wider than those of the
** database.
*/
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

/* Creates a ledger: writes the marker, then commits the ledger. A failure undoes both. */
static int create_fresh(struct ledger *ledger, const struct ledger_terms *terms, const char *name) {
  enum creation creation = create_file(ledger);
  int begun = !error_is_set(ledger->error) && connect_db(ledger) && set_journal(ledger) &&
              ledger_begin(ledger);
  if (begun && pragma_integer(ledger, "PRAGMA application_id") == APPLICATION_ID) {
    ledger_rollback(ledger); /* another process has created the ledger; use that one */
    close_db(ledger);
    return ledger_create(ledger, terms);
  }
  if (begun && write_schema(ledger, terms) && marker_write(ledger, ledger->id, name)) {
    if (ledger_commit(ledger)) return 1;
    marker_drop(ledger);
  }
  /*
  ** A file that existed before, or that another process has locked, may be another process's
  ** ledger.
  */
  int busy =
      !begun && ledger->db &&
      (ledger->lock == LOCK_FILE_NONE || (sqlite3_errcode(ledger->db) & 0xff) == SQLITE_BUSY);
  end_transaction(ledger);
  if (creation == FILE_CREATED && !busy) remove_empty(ledger);
  close_db(ledger);
  return 0;
}

static int create_named(struct ledger *ledger, const struct ledger_terms *terms, const char *name) {
  char *path = resolve(ledger, name);
  if (!path) return ledger_fail(ledger, "out of memory");
  if (!use_path(ledger, path)) /* there is no ledger, or it could not be read */
    return !error_is_set(ledger->error) && create_fresh(ledger, terms, name);
  return terms_match(ledger, terms) && marker_write(ledger, ledger->id, name);
}

/*
** Checks the option path: it must be absolute if the database has no directory, and a database in a
** file needs a ledger in a file.
*/
static int check_path(struct ledger *ledger, const char *path) {
  if (host_in_memory(ledger) && !path_is_absolute(path) && strcmp(path, MEMORY_PATH) != 0)
    return ledger_fail(ledger, "path '%s' must be absolute for an in-memory database", path);
  return host_in_memory(ledger) || strcmp(path, MEMORY_PATH) != 0 ||
         ledger_fail(ledger, "a database in a file needs a ledger in a file, not '%s'", path);
}

int ledger_create(struct ledger *ledger, const struct ledger_terms *terms) {
  error_clear(ledger->error);
  interrupt_heed(ledger, 1, 0);
  if (is_inherited(ledger)) return check_connection(ledger);
  struct marker marker;
  if (!json_present(&ledger->json) || !host_check(ledger) || !marker_read(ledger, "main", &marker))
    return 0;
  int marked = marker.id != 0;
  marker_clear(&marker);
  if (marked || ledger->read_only) return find_again(ledger, terms);
  if (!sqlite3_get_autocommit(ledger->host))
    return ledger_fail(ledger, "a ledger cannot be created inside a transaction (COMMIT first)");
  if (terms->path && !check_path(ledger, terms->path)) return 0;
  char *name = terms->path ? sqlite3_mprintf("%s", terms->path) : default_name(ledger);
  if (!name) return ledger_fail(ledger, "out of memory");
  int created = create_named(ledger, terms, name);
  sqlite3_free(name);
  return created;
}

/* ---- transactions ---------------------------------------------------------------------------- */

/*
** Sets round-to-nearest for the transaction, whatever rounding mode the host uses. Totals are
** rounded up by the error bound of round-to-nearest, and dp_verify() compares them to the last bit.
*/
static void round_to_nearest(struct ledger *ledger) {
  if (ledger->rounding >= 0) return;
  ledger->rounding = fegetround();
  fesetround(FE_TONEAREST);
}

static void round_as_before(struct ledger *ledger) {
  if (ledger->rounding >= 0) fesetround(ledger->rounding);
  ledger->rounding = -1;
}

/*
** Checks that the file was not overwritten since it was opened, with another ledger or another
** journal mode. While a ledger is being created there is nothing to compare yet.
*/
static int check_terms(struct ledger *ledger) {
  if (!ledger->id) return 1;
  struct terms now = {0};
  const char *journal = ledger->file || ledger_is_memory(ledger) ? "memory" : "truncate";
  int same = ledger_format(ledger) == LEDGER_FORMAT && terms_read(ledger, &now) &&
             strcmp(now.id, ledger->id) == 0 && now.protects == ledger->protects &&
             now.adjacency == ledger->adjacency && now.unchecked == ledger->unchecked;
  char mode[16];
  same =
      same && run_journal_mode(ledger, "PRAGMA journal_mode", mode) && strcmp(mode, journal) == 0;
  sqlite3_free(now.id);
  return same ||
         ledger_fail(ledger, "the privacy ledger '%s' was replaced while it was open (reconnect)",
                     ledger->path);
}

/* A BEGIN that fails for lack of memory can leave a transaction open. */
static int begin_with(struct ledger *ledger, enum statement which, int refuse_writes) {
  seal_forget(ledger);
  round_to_nearest(ledger);
  ledger->writes_refused = refuse_writes;
  /* SQLite's page cache would hide that the file was overwritten. */
  if (!error_is_set(ledger->error) && ledger->db && !ledger_is_memory(ledger))
    sqlite3_db_release_memory(ledger->db);
  if (lock_take(ledger, which == BEGIN_WRITE) && statement_run(ledger, which, "") &&
      check_terms(ledger))
    return 1;
  ledger_rollback(ledger);
  return 0;
}

int ledger_begin(struct ledger *ledger) {
  if (ledger->read_only) return begin_with(ledger, BEGIN_READ, 1);
  return begin_with(ledger, BEGIN_WRITE, 0);
}

int ledger_begin_reading(struct ledger *ledger) {
  return begin_with(ledger, BEGIN_READ, 0);
}

int ledger_begin_trial(struct ledger *ledger) {
  return begin_with(ledger, BEGIN_WRITE, 0);
}

int ledger_begin_ending(struct ledger *ledger) {
  return begin_with(ledger, BEGIN_WRITE, 0);
}

int ledger_commit(struct ledger *ledger) {
  if (!error_is_set(ledger->error) && check_connection(ledger)) seal_touched(ledger);
  int done = statement_run(ledger, COMMIT, "");
  ledger_rollback(ledger);
  return done;
}

void ledger_rollback(struct ledger *ledger) {
  seal_forget(ledger);
  round_as_before(ledger);
  copy_end(ledger);
  end_transaction(ledger);
  lock_drop(ledger);
  interrupt_end(ledger);
}
