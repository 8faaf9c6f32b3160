/*
** migrate.c: brings a ledger file of an older format to the format of sql/ledger.sql.
**
** The migration creates the tables of sql/ledger.sql and copies the rows by the names of their
** columns, so a migrated file has exactly the schema of a new one. A new column that may be NULL,
** or whose DEFAULT is right for old rows, needs no code here. Any other change needs a step.
**
** The migration is one transaction with the write lock. If the process is killed, the old file
** stays valid.
*/
#include <string.h>

#include "ledger/internal.h"
#include "ledger_sql.h"

SQLITE_EXTENSION_INIT3

/*
** steps[n] is SQL that runs on the tables of format n before the copy to format n + 1. A step is
** needed if copying by name is not enough, for example if a column is renamed or computed from
** other columns.
*/
static const char *const steps[LEDGER_FORMAT] = {
    [3] = "", /* no step: format 3 did not store queries, so dp_release.sql is NULL */
};

#define OLDEST_FORMAT 3

/*
** An SQL condition for the ledger's own tables. Objects that the owner has put into the file stay
** as they are.
*/
#define OURS "substr(name, 1, 3) = 'dp_'"

/*
** Drops the old triggers, views and indices. An index without an SQL text belongs to its table, and
** SQLite drops both together.
*/
#define DROP_OTHERS                                                                                \
  "SELECT group_concat('DROP ' || type || ' \"' || name || '\"', ';') FROM"                        \
  " (SELECT * FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL AND " OURS              \
  " ORDER BY rowid DESC)"

#define RENAME                                                                                     \
  "SELECT group_concat('ALTER TABLE \"' || name || '\" RENAME TO \"old_' || name || '\"', ';')"    \
  " FROM sqlite_master WHERE type = 'table' AND " OURS

/* SQL for the columns that a table has in both formats, in order. */
#define COMMON                                                                                     \
  "(SELECT group_concat('\"' || name || '\"') FROM (SELECT new.name FROM"                          \
  " pragma_table_info(t.name) new JOIN pragma_table_info('old_' || t.name) old"                    \
  " ON old.name = new.name ORDER BY new.cid))"

/* dp_path was a table in format 3 and is a view now, so the new name may be that of a view. */
#define COPY                                                                                       \
  "SELECT group_concat('INSERT INTO \"' || name || '\"(' || columns || ') SELECT ' || columns ||"  \
  " ' FROM \"old_' || name || '\" ORDER BY rowid', ';') FROM (SELECT name, " COMMON " AS columns"  \
  " FROM sqlite_master t WHERE type IN ('table', 'view') AND " OURS " ORDER BY rowid)"             \
  " WHERE columns IS NOT NULL"

/* Drops the tables from the last to the first, because later tables may refer to earlier tables. */
#define DROP_OLD                                                                                   \
  "SELECT group_concat('DROP TABLE \"' || name || '\"', ';') FROM (SELECT name FROM sqlite_master" \
  " WHERE type = 'table' AND substr(name, 1, 7) = 'old_dp_' ORDER BY rowid DESC)"

/* Runs the query, and then runs the SQL text in the first row of its result. */
static int run_made(struct ledger *ledger, const char *query) {
  sqlite3_stmt *row = 0;
  char *made = 0;
  if (error_is_set(ledger->error)) return 0;
  int rc = sqlite3_prepare_v2(ledger->db, query, -1, &row, 0);
  if (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) made = column_copy(ledger, row, 0);
  rc = sqlite3_finalize(row);
  if (rc == SQLITE_OK && made) rc = sqlite3_exec(ledger->db, made, 0, 0, 0);
  sqlite3_free(made);
  if (rc != SQLITE_OK) ledger_fail_sqlite(ledger);
  return !error_is_set(ledger->error);
}

static int run(struct ledger *ledger, const char *sql) {
  if (!error_is_set(ledger->error) && sqlite3_exec(ledger->db, sql, 0, 0, 0) != SQLITE_OK)
    ledger_fail_sqlite(ledger);
  return !error_is_set(ledger->error);
}

int ledger_make_schema(struct ledger *ledger) {
  return run(ledger, ledger_sql);
}

/*
** Migrates the file. Call this function inside a transaction. The function first compares all rows
** with their old seals, because a new seal would hide an edit of the file. The function does not
** migrate a ledger that differs from its seals. At the end, the function seals everything again,
** because rows may have new columns and ledgers of format 3 have no seals.
*/
static int migrate(struct ledger *ledger, int format) {
  int from = format;
  if (from == 3 &&
      sqlite3_table_column_metadata(ledger->db, "main", "dp_seal", 0, 0, 0, 0, 0, 0) == SQLITE_OK)
    /* A file with seals has at least format 4, so somebody has changed the format number. */
    return ledger_fail_damaged(ledger, "user_version");
  if (from > 3 && !seal_trust_all(ledger)) return 0;
  for (; format < LEDGER_FORMAT; format++) run(ledger, steps[format]);
  /* The pragma keeps the owner's views of the ledger's tables as they are. */
  return run(ledger, "PRAGMA legacy_alter_table = ON") && run_made(ledger, DROP_OTHERS) &&
         run_made(ledger, RENAME) && ledger_make_schema(ledger) && run_made(ledger, COPY) &&
         run_made(ledger, DROP_OLD) && seal_all(ledger);
}

/* ---- the schema ------------------------------------------------------------------------------ */

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

static int same_object(sqlite3_stmt *a, sqlite3_stmt *b) {
  for (int i = 0; i < 3; i++) {
    if (strcmp(column_text(a, i), column_text(b, i)) != 0) return 0;
  }
  return same_sql(column_text(a, 3), column_text(b, 3));
}

/* Steps through both lists of objects and compares them. Returns the first discrepancy or null. */
static char *compare_objects(struct ledger *ledger, sqlite3_stmt *wanted, sqlite3_stmt *found) {
  for (;;) {
    int more = sqlite3_step(wanted) == SQLITE_ROW, is_there = sqlite3_step(found) == SQLITE_ROW;
    if (!more && !is_there) return 0;
    if (more && is_there && same_object(wanted, found)) continue;
    int missing = !is_there || (more && strcmp(column_text(wanted, 1), column_text(found, 1)) < 0);
    return ledger_discrepancy(
        ledger, "schema: %s '%s' is %s", column_text(missing ? wanted : found, 0),
        column_text(missing ? wanted : found, 1), missing ? "missing" : "not that of the format");
  }
}

char *ledger_verify_schema(struct ledger *ledger) {
  sqlite3 *fresh = 0;
  sqlite3_stmt *wanted = 0, *found = 0;
  char *discrepancy = 0;
  int rc =
      sqlite3_open_v2(MEMORY_PATH, &fresh,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX, 0);
  if (rc == SQLITE_OK) rc = sqlite3_exec(fresh, ledger_sql, 0, 0, 0);
  if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(fresh, OBJECTS, -1, &wanted, 0);
  if (rc != SQLITE_OK) ledger_fail(ledger, "out of memory");
  if (rc == SQLITE_OK) {
    rc = sqlite3_prepare_v2(ledger->db, OBJECTS, -1, &found, 0);
    if (rc == SQLITE_OK) discrepancy = compare_objects(ledger, wanted, found);
    if (sqlite3_finalize(found) != SQLITE_OK) ledger_fail_sqlite(ledger);
    if (sqlite3_finalize(wanted) != SQLITE_OK) ledger_fail(ledger, "out of memory");
  }
  sqlite3_close(fresh);
  return discrepancy;
}

/* ---- migration ------------------------------------------------------------------------------- */

/* Returns whether the ledger file or the host's database is read-only. */
static int is_read_only(const struct ledger *ledger) {
  return ledger->read_only || sqlite3_db_readonly(ledger->db, "main") == 1; /* L7 */
}

int ledger_migrate(struct ledger *ledger) {
  int format = ledger_format(ledger);
  if (error_is_set(ledger->error) || format == LEDGER_FORMAT) return !error_is_set(ledger->error);
  if (format < OLDEST_FORMAT || format > LEDGER_FORMAT)
    return ledger_fail(ledger, "the privacy ledger '%s' has format %d, this version reads %d",
                       ledger->path, format, LEDGER_FORMAT);
  if (is_read_only(ledger))
    return ledger_fail(ledger,
                       "the privacy ledger '%s' has format %d and must be brought to format %d "
                       "(open the database once where it and its ledger can be written)",
                       ledger->path, format, LEDGER_FORMAT);
  if (!ledger_begin(ledger)) return 0;
  format = ledger_format(ledger); /* another process may have migrated the file meanwhile */
  if (format != LEDGER_FORMAT) migrate(ledger, format);
  return ledger_commit(ledger);
}
