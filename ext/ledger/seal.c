/*
** seal.c: writes and checks dp_seal, the hash chain for everything that the chain of charges does
** not cover.
**
** A seal belongs to one subject: a release, the terms and tiers, or the orders. At the end of a
** transaction, each subject that the transaction has changed gets a new seal. If only budgets have
** changed, the terms and tiers get a new seal. A seal holds two digests. The first covers all rows
** of the subject, and the second covers the budgets. statements.c lists which subject each
** statement changes, and ledger_commit() seals the changed subjects. Before a release is published,
** the ledger compares its rows with its last seal. dp_verify() compares all subjects with their
** seals. sql/ledger.sql defines the digests.
*/
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- digests --------------------------------------------------------------------------------- */

/* Adds one column as a line: its type, the length in bytes (of a text or a blob), and the value. */
static void add_column(struct digest *digest, sqlite3_stmt *row, int column) {
  int type = sqlite3_column_type(row, column);
  if (type == SQLITE_INTEGER) {
    digest_typed(digest, 'i', sqlite3_column_int64(row, column), '\n');
  } else if (type == SQLITE_FLOAT) {
    digest_add(digest, "r", 1);
    digest_bits(digest, sqlite3_column_double(row, column));
  } else if (type == SQLITE_NULL) {
    digest_add(digest, "n\n", 2);
  } else {
    const char *bytes = sqlite3_column_blob(row, column);
    int size = sqlite3_column_bytes(row, column);
    digest_typed(digest, type == SQLITE_TEXT ? 't' : 'b', size, ':');
    digest_add(digest, bytes, (size_t)size);
    digest_add(digest, "\n", 1);
  }
}

/* Adds all rows of a statement, each with the name of its table in front. */
static void add_rows(struct ledger *ledger, struct digest *digest, const char *table,
                     sqlite3_stmt *row) {
  size_t length = strlen(table);
  while (statement_row(ledger, row)) {
    int columns = sqlite3_column_count(row);
    digest_add(digest, table, length);
    digest_add(digest, "\n", 1);
    for (int i = 0; i < columns; i++) add_column(digest, row, i);
  }
}

static int seal_digest(struct ledger *ledger, int64_t subject, char hash[HASH_SIZE]) {
  static const struct {
    const char *table;
    enum statement rows;
  } terms[] = {{"dp_ledger", SEAL_OF_LEDGER},
               {"dp_tier", SEAL_OF_TIERS},
               {"dp_policy", SEAL_OF_POLICY},
               {"dp_grant", SEAL_OF_GRANTS}},
    orders[] = {{"dp_order", SEAL_OF_ORDERS}},
    release[] = {{"dp_release", SEAL_OF_RELEASE},
                 {"dp_publication", SEAL_OF_PUBLICATIONS},
                 {"dp_value", SEAL_OF_VALUES},
                 {"dp_path", SEAL_OF_PATH}};
  struct digest digest;
  digest_begin(&digest);
  if (subject == SEAL_TERMS) {
    for (int i = 0; i < 4; i++)
      add_rows(ledger, &digest, terms[i].table, statement_bind(ledger, terms[i].rows, ""));
  } else if (subject == SEAL_ORDERS) {
    add_rows(ledger, &digest, orders->table, statement_bind(ledger, orders->rows, ""));
  } else {
    for (int i = 0; i < 4; i++)
      add_rows(ledger, &digest, release[i].table,
               statement_bind(ledger, release[i].rows, "i", subject));
  }
  digest_finish(&digest, hash);
  return !error_is_set(ledger->error);
}

static int seal_books(struct ledger *ledger, char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  add_rows(ledger, &digest, "dp_budget", statement_bind(ledger, SEAL_OF_BUDGETS, ""));
  add_rows(ledger, &digest, "dp_reserve", statement_bind(ledger, SEAL_OF_RESERVES, ""));
  digest_finish(&digest, hash);
  return !error_is_set(ledger->error);
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Returns whether the last seal of a subject has this digest. */
static int is_sealed(struct ledger *ledger, int64_t subject, const char *digest) {
  sqlite3_stmt *row = statement_bind(ledger, SEAL_FIND, "i", subject);
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 0);
  int same = stored && strcmp(stored, digest) == 0;
  sqlite3_reset(row);
  return same;
}

static int append(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE], books[HASH_SIZE], hash[HASH_SIZE];
  if (!seal_digest(ledger, subject, digest) || !seal_books(ledger, books)) return 0;
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LAST, "");
  if (!statement_row(ledger, row)) return 0;
  char *previous = column_copy(ledger, row, 1), *charge = column_copy(ledger, row, 3),
       *at = column_copy(ledger, row, 5);
  int64_t last = sqlite3_column_int64(row, 0);
  if (last < 0 || last >= LEDGER_MOST_ROWS) last = ledger_fail_damaged(ledger, "dp_seal");
  struct seal seal = {.id = last + 1,
                      .release_id = subject,
                      .digest = digest,
                      .books = books,
                      .charge_id = sqlite3_column_int64(row, 2),
                      .charge = charge,
                      .at = at,
                      .hash = hash};
  const char *last_books = (const char *)sqlite3_column_text(row, 4);
  int same_books = last_books && strcmp(last_books, books) == 0;
  sqlite3_reset(row);
  if (!error_is_set(ledger->error) && !(same_books && is_sealed(ledger, subject, digest))) {
    columns_hash(previous, &columns_seal, &seal, hash);
    statement_insert(ledger, SEAL_INSERT, &seal);
  }
  sqlite3_free(previous);
  sqlite3_free(charge);
  sqlite3_free(at);
  return !error_is_set(ledger->error);
}

void seal_touch(struct ledger *ledger, int64_t subject) {
  struct touched *touched = &ledger->touched;
  /*
  ** The loop looks for the subject only in the last few entries. If it misses an earlier entry, the
  ** list contains the subject twice, which does no harm.
  */
  for (int i = touched->count; i > 0 && i > touched->count - 4; i--) {
    if (touched->subjects[i - 1] == subject) return;
  }
  if (touched->count == touched->room) {
    int room = 2 * touched->room + 4;
    int64_t *grown = sqlite3_realloc64(touched->subjects, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) {
      ledger_fail(ledger, "out of memory");
      return;
    }
    touched->subjects = grown;
    touched->room = room;
  }
  touched->subjects[touched->count++] = subject;
}

void seal_forget(struct ledger *ledger) {
  sqlite3_free(ledger->touched.subjects);
  ledger->touched = (struct touched){0};
}

static int is_touched(const struct ledger *ledger, int64_t subject) {
  for (int i = 0; i < ledger->touched.count; i++) {
    if (ledger->touched.subjects[i] == subject) return 1;
  }
  return 0;
}

int seal_touched(struct ledger *ledger) {
  if (ledger->touched.books && !ledger->touched.count) seal_touch(ledger, SEAL_TERMS);
  for (int i = 0; i < ledger->touched.count && !error_is_set(ledger->error); i++)
    append(ledger, ledger->touched.subjects[i]);
  return !error_is_set(ledger->error);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int seal_check(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE];
  return seal_digest(ledger, subject, digest) && is_sealed(ledger, subject, digest);
}

static int seal_check_books(struct ledger *ledger) {
  char books[HASH_SIZE];
  sqlite3_stmt *row = seal_books(ledger, books) ? statement_bind(ledger, SEAL_LAST, "") : 0;
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 4);
  int same = stored && strcmp(stored, books) == 0;
  sqlite3_reset(row);
  return same;
}

/* ---- verification ---------------------------------------------------------------------------- */

/*
** Checks the chain of seals. No seal may be missing, every hash must follow from the previous hash,
** and no seal may name an earlier charge than the seal before it.
*/
static char *check_chain(struct ledger *ledger) {
  char hash[HASH_SIZE] = "", *found = 0;
  int64_t last_charge = 0;
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LIST, "");
  for (int64_t expected = 1; !found && statement_row(ledger, row); expected++) {
    struct seal seal;
    int columns = columns_read(ledger, row, &columns_seal, &seal);
    seal.charge = column_text(row, columns);
    columns_hash(hash, &columns_seal, &seal, hash);
    if (seal.id != expected) {
      found = ledger_discrepancy(ledger, "dp_seal: row %lld is missing", (long long)expected);
    } else if (strcmp(hash, seal.hash) != 0 || seal.charge_id < last_charge ||
               !sqlite3_column_int(row, columns + 1)) {
      found = ledger_discrepancy(ledger, "dp_seal: row %lld does not match its hash",
                                 (long long)expected);
    }
    last_charge = seal.charge_id;
  }
  if (row) sqlite3_reset(row);
  if (!found && !error_is_set(ledger->error) && last_charge != ledger_last_charge(ledger))
    found = ledger_discrepancy(ledger, "dp_seal: the last charge has no seal");
  return found;
}

/* Compares every subject with its last seal, and finds subjects without a seal. */
static char *check_subjects(struct ledger *ledger) {
  char *found = 0;
  if (!seal_check(ledger, SEAL_TERMS))
    return ledger_discrepancy(ledger,
                              "dp_seal: dp_ledger, dp_tier, dp_policy or dp_grant was changed");
  if (!seal_check(ledger, SEAL_ORDERS))
    return ledger_discrepancy(ledger, "dp_seal: dp_order was changed");
  if (!seal_check_books(ledger))
    return ledger_discrepancy(ledger, "dp_seal: dp_budget or dp_reserve was changed");
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LATEST, "");
  while (!found && statement_row(ledger, row)) {
    char digest[HASH_SIZE];
    int64_t subject = sqlite3_column_int64(row, 0);
    if (seal_digest(ledger, subject, digest) && strcmp(digest, column_text(row, 1)) != 0)
      found = ledger_discrepancy(
          ledger,
          "dp_seal: the rows of release %lld ('%s') in dp_release, dp_publication, dp_value or "
          "dp_path were changed",
          (long long)subject, column_text(row, 2));
  }
  if (row) sqlite3_reset(row);
  return found;
}

/* Runs a query that finds discrepancies. Returns the first discrepancy, with its table, or null. */
static char *check_query(struct ledger *ledger, enum statement which) {
  sqlite3_stmt *row = statement_bind(ledger, which, "");
  char *found = 0;
  if (statement_row(ledger, row))
    found = ledger_discrepancy(ledger, "%s: '%s' %s", column_text(row, 0), column_text(row, 1),
                               column_text(row, 2));
  if (row) sqlite3_reset(row);
  return found;
}

char *ledger_verify_seals(struct ledger *ledger) {
  char *found = check_query(ledger, STATE_CHECK);
  if (!found) found = check_query(ledger, NAME_CHECK);
  if (!found) found = check_query(ledger, TYPE_CHECK);
  if (!found) found = check_chain(ledger);
  if (!found) found = check_subjects(ledger);
  if (!found) found = ledger_verify_schema(ledger);
  if (error_is_set(ledger->error)) { /* a read error may look like a discrepancy */
    sqlite3_free(found);
    found = 0;
  }
  return found;
}

/* ---- trust ----------------------------------------------------------------------------------- */

int ledger_trust_release(struct ledger *ledger, int64_t id) {
  if (error_is_set(ledger->error)) return 0;
  if (is_touched(ledger, id) || seal_check(ledger, id)) return 1;
  if (ledger->audience) /* an id would show how many releases there are */
    return ledger_fail_damaged(ledger, "the rows of a release");
  return ledger_fail(
      ledger,
      "the privacy ledger '%s' is damaged: the rows of release %lld are not what its "
      "last seal says (run dp_verify(), and restore the ledger from a backup)",
      ledger->path, (long long)id);
}

int seal_trust_books(struct ledger *ledger) {
  if (error_is_set(ledger->error) || ledger->touched.trusted) return !error_is_set(ledger->error);
  if (!seal_check(ledger, SEAL_TERMS))
    return ledger_fail_damaged(ledger, "dp_tier, dp_policy, dp_grant or dp_ledger");
  if (!seal_check_books(ledger)) return ledger_fail_damaged(ledger, "dp_budget or dp_reserve");
  ledger->touched.trusted = 1;
  return 1;
}
