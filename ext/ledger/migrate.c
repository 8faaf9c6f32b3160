/*
** migrate.c: brings a ledger file of an older format to the format of sql/ledger.sql.
**
** The tables are made anew from sql/ledger.sql and the rows are copied by the names of columns, so
** that a migrated file has exactly the schema of a new one. A column that may be NULL, or has a
** DEFAULT that is right for old rows, needs nothing here. Everything else is a step.
**
** All of it is one transaction under the write lock: a process that is killed leaves the old file.
*/
#include "ledger/internal.h"
#include "ledger_sql.h"

SQLITE_EXTENSION_INIT3

/*
** SQL that runs on the tables of format n before they are copied to those of format n + 1, where
** copying by name is not enough: a column that is renamed or computed from others.
*/
static const char *const steps[LEDGER_FORMAT] = {
    [3] = "", /* releases have no text of their query: dp_release.sql is NULL */
};

#define OLDEST_FORMAT 3

/* Our own tables. Another object of the owner in the file stays as it is. */
#define OURS "substr(name, 1, 3) = 'dp_'"

/* What stands in the way of the new schema: all but tables, and indices without a text. */
#define DROP_OTHERS                                                                                \
  "SELECT group_concat('DROP ' || type || ' \"' || name || '\"', ';') FROM"                        \
  " (SELECT * FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL AND " OURS              \
  " ORDER BY rowid DESC)"

#define RENAME                                                                                     \
  "SELECT group_concat('ALTER TABLE \"' || name || '\" RENAME TO \"old_' || name || '\"', ';')"    \
  " FROM sqlite_master WHERE type = 'table' AND " OURS

/* The columns that a table had already, in their order. */
#define COMMON                                                                                     \
  "(SELECT group_concat('\"' || name || '\"') FROM (SELECT new.name FROM"                          \
  " pragma_table_info(t.name) new JOIN pragma_table_info('old_' || t.name) old"                    \
  " ON old.name = new.name ORDER BY new.cid))"

#define COPY                                                                                       \
  "SELECT group_concat('INSERT INTO \"' || name || '\"(' || columns || ') SELECT ' || columns ||"  \
  " ' FROM \"old_' || name || '\" ORDER BY rowid', ';') FROM (SELECT name, " COMMON " AS columns"  \
  " FROM sqlite_master t WHERE type = 'table' AND " OURS " ORDER BY rowid)"                        \
  " WHERE columns IS NOT NULL"

/* The last first: a table may be referred to by a later one. */
#define DROP_OLD                                                                                   \
  "SELECT group_concat('DROP TABLE \"' || name || '\"', ';') FROM (SELECT name FROM sqlite_master" \
  " WHERE type = 'table' AND substr(name, 1, 7) = 'old_dp_' ORDER BY rowid DESC)"

/* Runs the statements that a query makes. */
static int run_made(struct ledger *ledger, const char *query) {
  sqlite3_stmt *row = 0;
  char *made = 0;
  if (ledger->error) return 0;
  int rc = sqlite3_prepare_v2(ledger->db, query, -1, &row, 0);
  if (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) made = column_copy(ledger, row, 0);
  rc = sqlite3_finalize(row);
  if (rc == SQLITE_OK && made) rc = sqlite3_exec(ledger->db, made, 0, 0, 0);
  sqlite3_free(made);
  if (rc != SQLITE_OK) ledger_fail_sqlite(ledger);
  return !ledger->error;
}

static int run(struct ledger *ledger, const char *sql) {
  if (!ledger->error && sqlite3_exec(ledger->db, sql, 0, 0, 0) != SQLITE_OK)
    ledger_fail_sqlite(ledger);
  return !ledger->error;
}

int ledger_make_schema(struct ledger *ledger) {
  return run(ledger, ledger_sql);
}

/* In a transaction. */
static int migrate(struct ledger *ledger, int format) {
  for (; format < LEDGER_FORMAT; format++) run(ledger, steps[format]);
  /* The owner's own views of our tables are left as they are. */
  return run(ledger, "PRAGMA legacy_alter_table = ON") && run_made(ledger, DROP_OTHERS) &&
         run_made(ledger, RENAME) && ledger_make_schema(ledger) && run_made(ledger, COPY) &&
         run_made(ledger, DROP_OLD);
}

/* Whether the file, or the database that it belongs to, may not be written. */
static int is_read_only(const struct ledger *ledger) {
  return ledger->read_only || sqlite3_db_readonly(ledger->db, "main") == 1; /* L7 */
}

int ledger_migrate(struct ledger *ledger) {
  int format = ledger_format(ledger);
  if (ledger->error || format == LEDGER_FORMAT) return !ledger->error;
  if (format < OLDEST_FORMAT || format > LEDGER_FORMAT)
    return ledger_fail(ledger, "the privacy ledger '%s' has format %d, this version reads %d",
                       ledger->path, format, LEDGER_FORMAT);
  if (is_read_only(ledger))
    return ledger_fail(ledger,
                       "the privacy ledger '%s' has format %d and must be brought to format %d "
                       "(open the database once where it and its ledger can be written)",
                       ledger->path, format, LEDGER_FORMAT);
  if (!ledger_begin(ledger)) return 0;
  format = ledger_format(ledger); /* another process may have been faster */
  if (format != LEDGER_FORMAT) migrate(ledger, format);
  return ledger_commit(ledger);
}
