/*
** create.c: creates a ledger and writes the marker, or finds an existing ledger (dp_init()).
** Tests: tests/ledger/test_ledger.py
*/
#include <string.h>

#include "ledger/connection.h"
#include "ledger/interrupt.h"
#include "ledger/marker.h"
#include "ledger/open.h"
#include "ledger/schema.h"
#include "ledger/statements.h"
#include "os/file.h"

SQLITE_EXTENSION_INIT3

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
    char *path = ledger_resolve(ledger, terms->path);
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
  if (begun && ledger_make_schema(ledger) &&
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
  char *name = terms->path ? sqlite3_mprintf("%s", terms->path) : ledger_default_name(ledger);
  char *path = name ? ledger_resolve(ledger, name) : 0;
  int created = 0;
  if (!path) {
    ledger_fail(ledger, "out of memory");
  } else if (ledger_use_path(ledger, path)) {
    created = terms_match(ledger, terms) && marker_write(ledger, ledger->id, name);
  } else if (!error_is_set(ledger->error)) { /* there is no ledger at this path */
    created = create_fresh(ledger, terms, name);
  }
  sqlite3_free(name);
  return created;
}
