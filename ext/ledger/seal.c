/*
** seal.c: writes and checks dp_seal, the hash chain for everything that the chain of charges does
** not cover.
**
** A seal belongs to one subject: a release, the terms and tiers, or the orders. At the end of a
** transaction, each subject that the transaction has changed gets a new seal. If only budgets have
** changed, the terms and tiers get a new seal. A seal holds two digests. The first covers all rows
** of the subject, and the second covers the budgets. Each statement says which subject it changes
** (statements.h), and ledger_commit() seals the changed subjects. Before a release is published,
** the ledger compares its rows with its last seal. dp_verify() compares all subjects with their
** seals. sql/ledger.sql defines the digests.
** Tests: tests/ledger/test_edits.py
*/
#include "ledger/seal.h"

#include <string.h>

#include "ledger/statements.h"
#include "ledger/touched.h"

SQLITE_EXTENSION_INIT3

static const struct statement rows_of_ledger = {.sql = "SELECT * FROM dp_ledger ORDER BY id"};
static const struct statement rows_of_tiers = {.sql = "SELECT * FROM dp_tier ORDER BY name"};
static const struct statement rows_of_policy = {.sql =
                                                    "SELECT * FROM dp_policy ORDER BY table_name"};
static const struct statement rows_of_grants = {.sql = "SELECT * FROM dp_grant ORDER BY name"};
static const struct statement rows_of_orders = {
    .sql = "SELECT tier, alpha, allowed FROM dp_order ORDER BY tier, alpha"};
static const struct statement rows_of_budgets = {.sql = "SELECT * FROM dp_budget ORDER BY tier"};
static const struct statement rows_of_reserves = {
    .sql = "SELECT * FROM dp_reserve ORDER BY grant_name, tier"};
static const struct statement rows_of_release = {.sql = "SELECT * FROM dp_release WHERE id = ?"};
static const struct statement rows_of_publications = {
    .sql = "SELECT * FROM dp_publication WHERE release_id = ? ORDER BY tier"};
static const struct statement rows_of_values = {
    .sql = "SELECT * FROM dp_value WHERE release_id = ? ORDER BY tier, key, component"};
static const struct statement rows_of_path = {
    .sql = "SELECT * FROM dp_path WHERE release_id = ? ORDER BY tier, key, component"};
static const struct statement rows_of_sums = {
    .sql = "SELECT * FROM dp_exact WHERE release_id = ? ORDER BY period, key, component"};
static const struct statement rows_of_allowances = {
    .sql = "SELECT * FROM dp_allowance WHERE release_id = ? ORDER BY part"};
static const struct statement select_seal = {
    .sql = "SELECT digest FROM dp_seal WHERE release_id = ? ORDER BY id DESC LIMIT 1"};
static const struct statement select_last_seal = {
    .sql =
        "SELECT s.id, s.hash, ifnull(c.id, 0), c.hash, s.books, " STATEMENT_NOW " FROM (SELECT 0)"
        " LEFT JOIN dp_seal s ON s.id = (SELECT max(id) FROM dp_seal)"
        " LEFT JOIN dp_charge c ON c.id = (SELECT max(id) FROM dp_charge)"};
static const struct statement insert_seal = {.row = &columns_seal, .changes = CHANGES_CHAIN};

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

int seal_digest(struct ledger *ledger, int64_t subject, char hash[HASH_SIZE]) {
  static const struct {
    const char *table;
    const struct statement *rows;
  } terms[] = {{"dp_ledger", &rows_of_ledger},
               {"dp_tier", &rows_of_tiers},
               {"dp_policy", &rows_of_policy},
               {"dp_grant", &rows_of_grants}},
    orders[] = {{"dp_order", &rows_of_orders}},
    release[] = {{"dp_release", &rows_of_release}, {"dp_publication", &rows_of_publications},
                 {"dp_value", &rows_of_values},    {"dp_path", &rows_of_path},
                 {"dp_exact", &rows_of_sums},      {"dp_allowance", &rows_of_allowances}};
  struct digest digest;
  digest_begin(&digest);
  if (subject == SEAL_TERMS) {
    for (int i = 0; i < 4; i++)
      add_rows(ledger, &digest, terms[i].table, statement_bind(ledger, terms[i].rows, ""));
  } else if (subject == SEAL_ORDERS) {
    add_rows(ledger, &digest, orders->table, statement_bind(ledger, orders->rows, ""));
  } else {
    for (int i = 0; i < 6; i++)
      add_rows(ledger, &digest, release[i].table,
               statement_bind(ledger, release[i].rows, "i", subject));
  }
  digest_finish(&digest, hash);
  return !error_is_set(ledger->error);
}

static int seal_books(struct ledger *ledger, char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  add_rows(ledger, &digest, "dp_budget", statement_bind(ledger, &rows_of_budgets, ""));
  add_rows(ledger, &digest, "dp_reserve", statement_bind(ledger, &rows_of_reserves, ""));
  digest_finish(&digest, hash);
  return !error_is_set(ledger->error);
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Returns whether the last seal of a subject has this digest. */
static int is_sealed(struct ledger *ledger, int64_t subject, const char *digest) {
  sqlite3_stmt *row = statement_bind(ledger, &select_seal, "i", subject);
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 0);
  int same = stored && strcmp(stored, digest) == 0;
  sqlite3_reset(row);
  return same;
}

static int append(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE], books[HASH_SIZE], hash[HASH_SIZE];
  if (!seal_digest(ledger, subject, digest) || !seal_books(ledger, books)) return 0;
  sqlite3_stmt *row = statement_bind(ledger, &select_last_seal, "");
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
    statement_insert(ledger, &insert_seal, &seal);
  }
  sqlite3_free(previous);
  sqlite3_free(charge);
  sqlite3_free(at);
  return !error_is_set(ledger->error);
}

int seal_touched(struct ledger *ledger) {
  if (ledger->touched.books && !ledger->touched.count) touched_add(ledger, SEAL_TERMS);
  for (int i = 0; i < ledger->touched.count && !error_is_set(ledger->error); i++)
    append(ledger, ledger->touched.subjects[i]);
  return !error_is_set(ledger->error);
}

/* ---- comparing ------------------------------------------------------------------------------- */

int seal_matches(struct ledger *ledger, int64_t subject) {
  char digest[HASH_SIZE];
  return seal_digest(ledger, subject, digest) && is_sealed(ledger, subject, digest);
}

int seal_matches_books(struct ledger *ledger) {
  char books[HASH_SIZE];
  sqlite3_stmt *row = seal_books(ledger, books) ? statement_bind(ledger, &select_last_seal, "") : 0;
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 4);
  int same = stored && strcmp(stored, books) == 0;
  sqlite3_reset(row);
  return same;
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

int seal_trust_books(struct ledger *ledger) {
  if (error_is_set(ledger->error) || ledger->touched.trusted) return !error_is_set(ledger->error);
  if (!seal_matches(ledger, SEAL_TERMS))
    return ledger_fail_damaged(ledger, "dp_tier, dp_policy, dp_grant or dp_ledger");
  if (!seal_matches_books(ledger)) return ledger_fail_damaged(ledger, "dp_budget or dp_reserve");
  ledger->touched.trusted = 1;
  return 1;
}
