/* seal.c: seals, the hash chain for everything that the chain of charges does not cover.
**
** A seal belongs to one subject: a release, the terms and tiers, or the orders. At the end of a
** transaction, each subject that it has changed (internal.h) gets a new seal; if only budgets have
** changed, the terms and tiers do. A seal holds two digests: of all rows of the subject, and of the
** budgets. Rows are compared with their last seal before a release is published, and all of them by
** dp_verify(). sql/ledger.sql defines digests and hashes.
**
** The hash is SHA-256 without a key: a program that changes the file can compute new seals, too.
** dp_certificate() gives the last hashes, for people who keep them elsewhere and compare.
** Tests: tests/ledger/test_edits.py */
#include <assert.h>
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* A row of dp_seal. `charge` is the hash of the charge with the id charge_id, which the hash of the
** seal covers. The struct does not own the texts. */
struct seal {
  int64_t id, release_id;
  const char *digest, *books;
  int64_t charge_id;
  const char *charge, *at;
};

/* The rows that a digest covers, and the name of their table, which stands before each row. */
struct sealed_rows {
  const char *table;
  const char *sql;
};
static const struct sealed_rows rows_of_terms[] = {
    {"dp_ledger", "SELECT * FROM dp_ledger ORDER BY id"},
    {"dp_tier", "SELECT * FROM dp_tier ORDER BY name"},
    {"dp_policy", "SELECT * FROM dp_policy ORDER BY table_name"},
    {"dp_grant", "SELECT * FROM dp_grant ORDER BY name"},
    {"dp_page", "SELECT * FROM dp_page ORDER BY tier"},
    {0, 0}};
static const struct sealed_rows rows_of_orders[] = {
    {"dp_order", "SELECT tier, alpha, allowed FROM dp_order ORDER BY tier, alpha"}, {0, 0}};
static const struct sealed_rows rows_of_books[] = {
    {"dp_budget", "SELECT * FROM dp_budget ORDER BY tier"},
    {"dp_reserve", "SELECT * FROM dp_reserve ORDER BY grant_name, tier"},
    {0, 0}};
static const struct sealed_rows rows_of_release[] = {
    {"dp_release", "SELECT * FROM dp_release WHERE id = ?"},
    {"dp_publication", "SELECT * FROM dp_publication WHERE release_id = ? ORDER BY tier"},
    {"dp_value", "SELECT * FROM dp_value WHERE release_id = ? ORDER BY tier, key, component"},
    {"dp_path", "SELECT * FROM dp_path WHERE release_id = ? ORDER BY tier, key, component"},
    {"dp_exact", "SELECT * FROM dp_exact WHERE release_id = ? ORDER BY period, key, component"},
    {"dp_allowance", "SELECT * FROM dp_allowance WHERE release_id = ? ORDER BY part"},
    {0, 0}};

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

/* Computes the digest of all rows of some tables. `subject` is 0, or the id of a release. */
static int rows_digest(struct ledger *ledger, const struct sealed_rows *rows, int64_t subject,
                       char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  for (; rows->table; rows++) {
    sqlite3_stmt *row = statement_bind(ledger, rows->sql, subject ? "i" : "", subject);
    while (statement_row(ledger, row)) {
      digest_text(&digest, rows->table);
      for (int i = 0; i < sqlite3_column_count(row); i++) add_column(&digest, row, i);
    }
  }
  digest_finish(&digest, hash);
  return !error_is_set(ledger->error);
}

static int seal_digest(struct ledger *ledger, int64_t subject, char hash[HASH_SIZE]) {
  if (subject == SEAL_TERMS) return rows_digest(ledger, rows_of_terms, 0, hash);
  if (subject == SEAL_ORDERS) return rows_digest(ledger, rows_of_orders, 0, hash);
  return rows_digest(ledger, rows_of_release, subject, hash);
}

/* ---- the chain ------------------------------------------------------------------------------- */

static int holds(struct ledger *ledger, sqlite3_stmt *row, int column, const char *digest) {
  return statement_row(ledger, row) && strcmp(column_text(ledger, row, column), digest) == 0;
}

static int is_sealed(struct ledger *ledger, int64_t subject, const char *digest) {
  return holds(
      ledger,
      statement_bind(ledger,
                     "SELECT digest FROM dp_seal WHERE release_id = ? ORDER BY id DESC LIMIT 1",
                     "i", subject),
      0, digest);
}

static void seal_hash(const char *previous, const struct seal *seal, char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  digest_text(&digest, previous);
  digest_typed(&digest, 0, seal->id, '\n');
  digest_typed(&digest, 0, seal->release_id, '\n');
  digest_text(&digest, seal->digest);
  digest_text(&digest, seal->books);
  digest_typed(&digest, 0, seal->charge_id, '\n');
  digest_text(&digest, seal->charge);
  digest_text(&digest, seal->at);
  digest_finish(&digest, hash);
}

static const char select_last_seal[] =
    "SELECT s.id, s.hash, ifnull(c.id, 0), c.hash, s.books, " STATEMENT_NOW " FROM (SELECT 0)"
    " LEFT JOIN dp_seal s ON s.id = (SELECT max(id) FROM dp_seal)"
    " LEFT JOIN dp_charge c ON c.id = (SELECT max(id) FROM dp_charge)";

static int append(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE], books[HASH_SIZE], hash[HASH_SIZE];
  if (!seal_digest(ledger, subject, digest) || !rows_digest(ledger, rows_of_books, 0, books))
    return 0;
  sqlite3_stmt *row = statement_bind(ledger, select_last_seal, "");
  if (!statement_row(ledger, row)) return 0;
  int64_t last = sqlite3_column_int64(row, 0);
  if (last < 0 || last >= LEDGER_MOST_ROWS) last = ledger_fail_damaged(ledger, "dp_seal");
  struct seal seal = {.id = last + 1,
                      .release_id = subject,
                      .digest = digest,
                      .books = books,
                      .charge_id = sqlite3_column_int64(row, 2),
                      .charge = column_borrow(ledger, row, 3),
                      .at = column_borrow(ledger, row, 5)};
  const char *previous = column_borrow(ledger, row, 1);
  int same_books = strcmp(column_text(ledger, row, 4), books) == 0;
  if (!error_is_set(ledger->error) && !(same_books && is_sealed(ledger, subject, digest))) {
    seal_hash(previous, &seal, hash);
    statement_run(ledger, CHANGES_CHAIN,
                  "INSERT INTO dp_seal(id, release_id, digest, books, charge_id,"
                  " at, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  "iississ", seal.id, seal.release_id, seal.digest, seal.books, seal.charge_id,
                  seal.at, hash);
  }
  return !error_is_set(ledger->error);
}

/* Appends the seals of a transaction. */
static int seal_touched(struct ledger *ledger) {
  if (ledger->touched.books && !ledger->touched.count) touched_add(ledger, SEAL_TERMS);
  for (int i = 0; i < ledger->touched.count && !error_is_set(ledger->error); i++)
    append(ledger, ledger->touched.subjects[i]);
  return !error_is_set(ledger->error);
}

int ledger_commit(struct ledger *ledger) {
  assert(ledger->unsynced != 1); /* a trial is never committed */
  if (!error_is_set(ledger->error) && connection_check(ledger)) seal_touched(ledger);
  int done = statement_run(ledger, CHANGES_TRANSACTION, "COMMIT", "");
  ledger_rollback(ledger);
  return done;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int seal_matches(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE];
  return seal_digest(ledger, subject, digest) && is_sealed(ledger, subject, digest);
}

static int seal_matches_books(struct ledger *ledger) {
  char books[HASH_SIZE];
  return rows_digest(ledger, rows_of_books, 0, books) &&
         holds(ledger, statement_bind(ledger, select_last_seal, ""), 4, books);
}

/* ---- trust ----------------------------------------------------------------------------------- */

int ledger_trust_release(struct ledger *ledger, int64_t id) {
  if (error_is_set(ledger->error)) return 0;
  if (touched_has(ledger, id) || seal_matches(ledger, id)) return 1;
  if (ledger->audience) /* an id would show how many releases there are */
    return ledger_fail_damaged(ledger, "the rows of a release");
  return ledger_fail(
      ledger,
      "the privacy ledger '%s' is damaged: the rows of release %lld are not what its "
      "last seal says (run dp_verify(), and restore the ledger from a backup)",
      ledger->path, (long long)id);
}

int64_t ledger_release_seal(struct ledger *ledger, int64_t id) {
  return statement_integer(ledger, "SELECT max(id) FROM dp_seal WHERE release_id = ?", "i", id);
}

int64_t ledger_last_seal(struct ledger *ledger) {
  return statement_integer(ledger, "SELECT max(id) FROM dp_seal", "");
}

int seal_trust_books(struct ledger *ledger) {
  if (error_is_set(ledger->error) || ledger->touched.trusted) return !error_is_set(ledger->error);
  if (!seal_matches(ledger, SEAL_TERMS))
    return ledger_fail_damaged(ledger, "dp_tier, dp_policy, dp_grant, dp_page or dp_ledger");
  if (!seal_matches_books(ledger)) return ledger_fail_damaged(ledger, "dp_budget or dp_reserve");
  ledger->touched.trusted = 1;
  return 1;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* No seal may be missing, each hash must follow from the one before, and no seal may name an
** earlier charge than the seal before it. */
static void check_chain(struct ledger *ledger, int64_t newest) {
  char hash[HASH_SIZE] = "";
  int64_t last_charge = 0;
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT id, release_id, digest, books, charge_id, at, hash,"
                                     " (SELECT hash FROM dp_charge c"
                                     " WHERE c.id = charge_id), charge_id = 0 OR EXISTS (SELECT 1"
                                     " FROM dp_charge c WHERE c.id = charge_id) FROM dp_seal"
                                     " ORDER BY id",
                                     "");
  for (int64_t expected = 1; statement_row(ledger, row); expected++) {
    struct seal seal = {.id = sqlite3_column_int64(row, 0),
                        .release_id = sqlite3_column_int64(row, 1),
                        .digest = column_text(ledger, row, 2),
                        .books = column_text(ledger, row, 3),
                        .charge_id = sqlite3_column_int64(row, 4),
                        .charge = column_text(ledger, row, 7),
                        .at = column_text(ledger, row, 5)};
    seal_hash(hash, &seal, hash);
    if (seal.id != expected)
      ledger_discrepancy(ledger, "dp_seal: row %lld is missing", (long long)expected);
    if (strcmp(hash, column_text(ledger, row, 6)) != 0 || seal.charge_id < last_charge ||
        !sqlite3_column_int(row, 8))
      ledger_discrepancy(ledger, "dp_seal: row %lld does not match its hash", (long long)expected);
    last_charge = seal.charge_id;
  }
  if (last_charge != newest) ledger_discrepancy(ledger, "dp_seal: the last charge has no seal");
}

/* Compares every subject with its last seal, and finds subjects without a seal. */
static void check_subjects(struct ledger *ledger) {
  if (!seal_matches(ledger, SEAL_TERMS))
    ledger_discrepancy(ledger, "dp_seal: dp_ledger, dp_tier, dp_policy, dp_grant or "
                               "dp_page was changed");
  if (!seal_matches(ledger, SEAL_ORDERS))
    ledger_discrepancy(ledger, "dp_seal: dp_order was changed");
  if (!seal_matches_books(ledger))
    ledger_discrepancy(ledger, "dp_seal: dp_budget or dp_reserve was changed");
  /* Lists the last seal of each release, and NULL for a release without a seal. */
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT r.id, (SELECT digest FROM dp_seal"
                                     " WHERE release_id = r.id ORDER BY id DESC LIMIT 1), name"
                                     " FROM dp_release r ORDER BY r.id",
                                     "");
  while (statement_row(ledger, row)) {
    char digest[HASH_SIZE];
    int64_t subject = sqlite3_column_int64(row, 0);
    if (seal_digest(ledger, subject, digest) && strcmp(digest, column_text(ledger, row, 1)) != 0)
      ledger_discrepancy(
          ledger,
          "dp_seal: the rows of release %lld ('%s') in dp_release, dp_publication, dp_value, "
          "dp_path, dp_exact or dp_allowance were changed",
          (long long)subject, column_text(ledger, row, 2));
  }
}

int seals_verify(struct ledger *ledger, int64_t last_charge) {
  check_chain(ledger, last_charge);
  check_subjects(ledger);
  return !error_is_set(ledger->error);
}
