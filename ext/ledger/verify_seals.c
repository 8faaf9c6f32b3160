/*
** verify_seals.c: the last part of dp_verify(). It checks the chain of seals, compares all rows
** with their seals, and finds rows that contradict each other.
** Tests: tests/ledger/test_edits.py
*/
#include <string.h>

#include "ledger/connection.h"
#include "ledger/seal.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement check_integrity = {.sql = "PRAGMA integrity_check(1)"};
static const struct statement select_seals = {
    .sql = "SELECT id, release_id, digest, books, charge_id, at, hash,"
           " (SELECT hash FROM dp_charge c WHERE c.id = charge_id), charge_id = 0 OR"
           " EXISTS (SELECT 1 FROM dp_charge c WHERE c.id = charge_id)"
           " FROM dp_seal ORDER BY id"};
/* Lists the last seal of each release, and NULL for a release without a seal. */
static const struct statement select_latest_seals = {
    .sql = "SELECT r.id, (SELECT digest FROM dp_seal WHERE release_id = r.id ORDER BY id "
           "DESC LIMIT 1),"
           " name FROM dp_release r ORDER BY r.id"};
static const struct statement find_wrong_state = {
    .sql = "SELECT 'dp_release', name, 'is ' || state || ', which does not fit its points' FROM"
           " (SELECT name, state, EXISTS (SELECT 1 FROM dp_publication WHERE release_id = id) AS"
           " published, EXISTS (SELECT 1 FROM dp_point p WHERE p.release_id = r.id) AS drawn"
           " FROM dp_release r)"
           " WHERE (state = 'released' AND NOT (published AND drawn)) OR"
           " (state = 'charged' AND published <> drawn) UNION ALL"
           " SELECT 'sqlite_sequence', 'dp_release', 'is not the last id' WHERE"
           " (SELECT ifnull(group_concat(typeof(name) || typeof(seq) || name || seq),"
           " 'textintegerdp_release0') FROM sqlite_sequence) <>"
           " 'textintegerdp_release' || (SELECT ifnull(max(id), 0) FROM dp_release)"
           " LIMIT 1"};
static const struct statement find_wrong_name = {
    .sql = "SELECT t, p.release, 'is not the name of its release' FROM"
           " (SELECT 'dp_charge' AS t, release_id, release FROM dp_charge UNION ALL"
           " SELECT 'dp_publication', release_id, release FROM dp_publication UNION ALL"
           " SELECT 'dp_value', release_id, release FROM dp_value UNION ALL"
           " SELECT 'dp_path', release_id, release FROM dp_point) p"
           " LEFT JOIN dp_release r ON r.id = release_id WHERE p.release IS NOT r.name LIMIT 1"};
/*
** Checks the types of the columns that no seal covers: those of the two hash chains (dp_charge
** and dp_seal), and dp_order.curve.
*/
static const struct statement find_wrong_type = {
    .sql = "SELECT 'dp_charge', id, 'has a column of another type' FROM dp_charge WHERE"
           " typeof(release) || typeof(tier) || typeof(at) || typeof(hash) || typeof(rate) ||"
           " typeof(delta) || typeof(slack) || typeof(release_id) || typeof(kind) <>"
           " 'texttexttexttextrealrealrealintegertext' OR typeof(curve) NOT IN ('null', 'blob') OR "
           "typeof(grant_name) NOT IN ('null',"
           " 'text') OR typeof(period) NOT IN ('null', 'text') UNION ALL"
           " SELECT 'dp_seal', id, 'has a column of another type' FROM dp_seal WHERE"
           " typeof(digest) || typeof(books) || typeof(at) || typeof(hash) || typeof(release_id) ||"
           " typeof(charge_id) <> 'texttexttexttextintegerinteger' UNION ALL"
           " SELECT 'dp_order', tier, 'has a column of another type' FROM dp_order WHERE"
           " typeof(curve) <> 'real' LIMIT 1"};

/*
** Checks the chain of seals. No seal may be missing, every hash must follow from the previous hash,
** and no seal may name an earlier charge than the seal before it.
*/
static void check_chain(struct ledger *ledger) {
  char hash[HASH_SIZE] = "";
  int64_t last_charge = 0;
  sqlite3_stmt *row = statement_bind(ledger, &select_seals, "");
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
  if (last_charge != ledger_last_charge(ledger))
    ledger_discrepancy(ledger, "dp_seal: the last charge has no seal");
}

/* Compares every subject with its last seal, and finds subjects without a seal. */
static void check_subjects(struct ledger *ledger) {
  if (!seal_matches(ledger, SEAL_TERMS))
    ledger_discrepancy(ledger, "dp_seal: dp_ledger, dp_tier, dp_policy or dp_grant was changed");
  if (!seal_matches(ledger, SEAL_ORDERS))
    ledger_discrepancy(ledger, "dp_seal: dp_order was changed");
  if (!seal_matches_books(ledger))
    ledger_discrepancy(ledger, "dp_seal: dp_budget or dp_reserve was changed");
  sqlite3_stmt *row = statement_bind(ledger, &select_latest_seals, "");
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

/*
** Reports what SQLite's own check finds, for example an index that disagrees with its table. A
** statement that reads an index cannot notice this.
*/
static void check_file(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, &check_integrity, "");
  if (statement_row(ledger, row) && strcmp(column_text(ledger, row, 0), "ok") != 0)
    ledger_discrepancy(ledger, "file: %s", column_text(ledger, row, 0));
}

int ledger_verify_seals(struct ledger *ledger) {
  statement_discrepancy(ledger, &find_wrong_state);
  statement_discrepancy(ledger, &find_wrong_name);
  statement_discrepancy(ledger, &find_wrong_type);
  check_chain(ledger);
  check_subjects(ledger);
  ledger_verify_schema(ledger);
  check_file(ledger);
  return !error_is_set(ledger->error);
}
