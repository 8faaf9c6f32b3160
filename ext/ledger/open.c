/*
** open.c: finds, opens and creates (dp_init()) the ledger of a database. The ledger is at the path
** in the marker, or beside the database.
** Tests: tests/ledger/test_files.py, tests/ledger/test_concurrency.py,
** tests/ledger/test_columns.py, tests/ledger/test_ledger.py
*/
#include <string.h>

#include "base/own_connection.h"
#include "ledger/connection.h"
#include "ledger/handle.h"
#include "ledger/statements.h"
#include "ledger_sql.h"
#include "os/file.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_id = {.sql = "SELECT id FROM dp_ledger"};

/* ---- where the ledger is --------------------------------------------------------------------- */

/*
** Returns the path of `name` in the database's directory. If `name` is absolute, or if the database
** has no directory, returns a copy of `name`. The caller calls sqlite3_free().
*/
static char *resolve(const struct ledger *ledger, const char *name) {
  const char *database = sqlite3_db_filename(ledger->host, "main");
  const char *beside = database && !host_in_memory(ledger) ? path_name(database) : database;
  if (path_is_absolute(name) || strcmp(name, MEMORY_PATH) == 0 || beside == database)
    return sqlite3_mprintf("%s", name);
  return sqlite3_mprintf("%.*s%s", (int)(beside - database), database, name);
}

/*
** Returns the default path of a ledger, as a marker stores it. The path is relative to the
** database, so that both files can move together. The caller calls sqlite3_free().
*/
static char *default_name(const struct ledger *ledger) {
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

/* ---- the tables of sql/ledger.sql ------------------------------------------------------------ */

/* Fails if the format number of the open file is not LEDGER_FORMAT. */
static int check_format(struct ledger *ledger) {
  int format = ledger_format(ledger);
  if (format != LEDGER_FORMAT)
    ledger_fail(ledger,
                "the privacy ledger '%s' has format %d, and this version reads format "
                "%d (use the version of diffuse that wrote it)",
                ledger->path, format, LEDGER_FORMAT);
  return !error_is_set(ledger->error);
}

#define OBJECTS                                                                                    \
  "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"                      \
  " AND substr(name, 1, 7) <> 'sqlite_' ORDER BY type, name"

/*
** Returns the next character of an SQL text that is neither white space nor part of a comment, or 0
** at the end.
*/
static char next_character(const char **sql, char *quote) {
  const char *at = *sql;
  while (!*quote && *at) {
    if (strchr(" \t\r\n", *at)) {
      at++;
    } else if (at[0] == '-' && at[1] == '-') {
      at += strcspn(at, "\n");
    } else {
      break;
    }
  }
  if (*quote) {
    if (*at == *quote) *quote = 0;
  } else if (*at == '\'' || *at == '"') {
    *quote = *at;
  }
  *sql = at + (*at != 0);
  return *at;
}

/* Returns whether two SQL texts are equal apart from comments and white space. */
static int same_sql(const char *a, const char *b) {
  char quote_a = 0, quote_b = 0, c;
  do {
    c = next_character(&a, &quote_a);
    if (c != next_character(&b, &quote_b)) return 0;
  } while (c);
  return 1;
}

static int same_object(struct ledger *ledger, sqlite3_stmt *a, sqlite3_stmt *b) {
  for (int i = 0; i < 3; i++) {
    if (strcmp(column_text(ledger, a, i), column_text(ledger, b, i)) != 0) return 0;
  }
  return same_sql(column_text(ledger, a, 3), column_text(ledger, b, 3));
}

/* Steps through both lists of objects and compares them. */
static int compare_objects(struct ledger *ledger, sqlite3_stmt *wanted, sqlite3_stmt *found) {
  for (;;) {
    int of_wanted = sqlite3_step(wanted), of_found = sqlite3_step(found);
    int more = of_wanted == SQLITE_ROW, is_there = of_found == SQLITE_ROW;
    if (!more && of_wanted != SQLITE_DONE) return ledger_fail(ledger, "out of memory");
    if (!is_there && of_found != SQLITE_DONE) return ledger_fail_sqlite(ledger);
    if (!more && !is_there) return 1;
    if (more && is_there && same_object(ledger, wanted, found)) continue;
    int order = !more ? 1 : !is_there ? -1 : 0;
    for (int i = 0; i < 2 && !order; i++)
      order = strcmp(column_text(ledger, wanted, i), column_text(ledger, found, i));
    const char *type = column_text(ledger, order < 0 ? wanted : found, 0);
    const char *name = column_text(ledger, order < 0 ? wanted : found, 1);
    if (order <= 0)
      return ledger_discrepancy(ledger, "schema: %s '%s' is %s", type, name,
                                order ? "missing" : "not that of the format");
    return ledger_discrepancy(ledger,
                              "schema: another program has put the %s '%s' into the ledger file "
                              "(drop it there, which loses no charge)",
                              type, name);
  }
}

int ledger_verify_schema(struct ledger *ledger) {
  sqlite3 *fresh = 0;
  sqlite3_stmt *wanted = 0, *found = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (error_is_set(ledger->error)) return 0;
  if (own_connection_open(&fresh, MEMORY_PATH, flags, 0) != SQLITE_OK ||
      sqlite3_exec(fresh, ledger_sql, 0, 0, 0) != SQLITE_OK ||
      sqlite3_prepare_v2(fresh, OBJECTS, -1, &wanted, 0) != SQLITE_OK) {
    ledger_fail(ledger, "out of memory");
  } else if (sqlite3_prepare_v2(ledger->db, OBJECTS, -1, &found, 0) != SQLITE_OK) {
    ledger_fail_sqlite(ledger);
  } else {
    compare_objects(ledger, wanted, found);
  }
  sqlite3_finalize(found);
  sqlite3_finalize(wanted);
  sqlite3_close(fresh);
  return !error_is_set(ledger->error);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_existing(struct ledger *ledger) {
  int opened = connection_start(ledger) &&
               (connection_is_ledger(ledger) ||
                ledger_fail(ledger, "'%s' is not a privacy ledger (restore it from a backup)",
                            ledger->path)) &&
               connection_set_journal(ledger) && check_format(ledger) &&
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

/*
** Opens the ledger at `path`, unless it is open already. Returns 0 without an error if there is no
** ledger at `path`. The function takes ownership of the string. An in-memory ledger cannot be
** opened again, so for MEMORY_PATH the function succeeds only if this ledger is open. The function
** refuses the files of the host's database, because closing such a file would drop the host's own
** locks.
*/
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
  error_clear(ledger->error);
  interrupt_heed(ledger, 1, 0);
  /* The code does not read the marker after a fork(). */
  if (ledger_is_inherited(ledger)) return connection_check(ledger);
  ledger_rollback(ledger); /* a transaction may be open since memory ran out */
  struct marker marker;
  if (!host_check(ledger) || !marker_read(ledger, "main", &marker)) return 0;
  char *name = marker.id ? 0 : default_name(ledger); /* without a marker: beside it */
  int found =
      marker.id ? open_marked(ledger, &marker) : use_path(ledger, name ? resolve(ledger, name) : 0);
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

/* ---- creating a ledger (dp_init()) ----------------------------------------------------------- */

static const struct statement insert_terms = {
    .sql = "INSERT INTO dp_ledger(id, unit, protects, adjacency, created_at)"
           " VALUES (lower(hex(randomblob(16))), ?, ?, ?, " STATEMENT_NOW ")",
    .changes = CHANGES_TERMS};

/* Returns whether an existing ledger has the terms of this dp_init(). */
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

/*
** Opens the existing ledger of a database that has a marker, or in which no marker can be written.
** Fails if there is no ledger or if its terms differ from these terms.
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

/*
** Creates an empty file for the new ledger. The permissions of the file are at most those of the
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

/* Creates the tables, inside a transaction. */
static int make_schema(struct ledger *ledger) {
  return sqlite3_exec(ledger->db, ledger_sql, 0, 0, 0) == SQLITE_OK || ledger_fail_sqlite(ledger);
}

/*
** Creates a ledger: writes the marker and then commits the ledger. After a failure neither the
** marker nor the ledger exists.
*/
static int create_fresh(struct ledger *ledger, const struct ledger_terms *terms, const char *name) {
  enum creation creation = create_file(ledger);
  int begun = !error_is_set(ledger->error) && connection_start(ledger) &&
              connection_set_journal(ledger) && ledger_begin(ledger);
  if (begun && connection_is_ledger(ledger)) {
    ledger_rollback(ledger); /* another process has created the ledger; use that one */
    connection_close(ledger);
    return ledger_create(ledger, terms);
  }
  if (begun && make_schema(ledger) &&
      statement_run(ledger, &insert_terms, "sss", terms->unit, protects_name[terms->protects],
                    adjacency_name[terms->adjacency]) &&
      connection_read_terms(ledger) && marker_write(ledger, ledger->id, name)) {
    if (ledger_commit(ledger)) return 1;
    sqlite3_exec(ledger->host, "DROP TABLE main.dp_ledger_id", 0, 0, 0);
  }
  /*
  ** A file that existed before, or that another process has locked, may be the ledger of another
  ** process. The code does not delete such a file.
  */
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

/*
** Returns whether the database file is encrypted, as SQLCipher does it: it then does not begin with
** SQLite's magic text. An empty file tells nothing. The host's own file handle reads the bytes,
** because closing another one would drop the host's locks.
*/
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
  error_clear(ledger->error);
  interrupt_heed(ledger, 1, 0);
  if (ledger_is_inherited(ledger)) return connection_check(ledger);
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
