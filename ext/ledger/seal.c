/*
** seal.c: owns dp_seal, the chain that covers everything that the chain of charges does not.
**
** A seal holds the digest of all rows of one release, of the terms and tiers, or of the orders, as
** they are at the end of the transaction that changed them; and the digest of the budgets. Each
** statement that writes says which of them it changes (statements.c), ledger_commit() seals them.
** Whoever reads a release to publish it compares its rows with its last seal; dp_verify() compares
** everything. What is hashed how: sql/ledger.sql.
*/
#include <sodium.h>
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- digests --------------------------------------------------------------------------------- */

/* A hash in the making. Rows are many and their columns short, so they are gathered first. */
struct digest {
  crypto_hash_sha256_state state;
  size_t gathered;
  char text[1024];
};

static void flush(struct digest *digest) {
  crypto_hash_sha256_update(&digest->state, (const unsigned char *)digest->text, digest->gathered);
  digest->gathered = 0;
}

static void add(struct digest *digest, const char *text, size_t size) {
  if (size > sizeof digest->text - digest->gathered) flush(digest);
  if (size > sizeof digest->text) {
    crypto_hash_sha256_update(&digest->state, (const unsigned char *)text, size);
  } else if (size) {
    memcpy(digest->text + digest->gathered, text, size);
    digest->gathered += size;
  }
}

/* A letter, an integer in decimal, and one more character. */
static void add_integer(struct digest *digest, char type, int64_t x, char end) {
  char line[24], *at = line + sizeof line;
  uint64_t left = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  *--at = end;
  do {
    *--at = (char)('0' + left % 10);
    left /= 10;
  } while (left);
  if (x < 0) *--at = '-';
  *--at = type;
  add(digest, at, (size_t)(line + sizeof line - at));
}

static void add_real(struct digest *digest, double x) {
  char line[18] = "r";
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  for (int i = 0; i < 16; i++) line[1 + i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 15];
  line[17] = '\n';
  add(digest, line, sizeof line);
}

/* One column as a line: its type, the length of what follows in bytes, and its value. */
static void add_column(struct digest *digest, sqlite3_stmt *row, int column) {
  int type = sqlite3_column_type(row, column);
  if (type == SQLITE_INTEGER) {
    add_integer(digest, 'i', sqlite3_column_int64(row, column), '\n');
  } else if (type == SQLITE_FLOAT) {
    add_real(digest, sqlite3_column_double(row, column));
  } else if (type == SQLITE_NULL) {
    add(digest, "n\n", 2);
  } else {
    const char *bytes = sqlite3_column_blob(row, column);
    int size = sqlite3_column_bytes(row, column);
    add_integer(digest, type == SQLITE_TEXT ? 't' : 'b', size, ':');
    add(digest, bytes, (size_t)size);
    add(digest, "\n", 1);
  }
}

/* All rows that a statement gives: the name of the table before each. */
static void add_rows(struct ledger *ledger, struct digest *digest, const char *table,
                     sqlite3_stmt *row) {
  size_t length = strlen(table);
  while (statement_row(ledger, row)) {
    int columns = sqlite3_column_count(row);
    add(digest, table, length);
    add(digest, "\n", 1);
    for (int i = 0; i < columns; i++) add_column(digest, row, i);
  }
}

static void begin(struct digest *digest) {
  crypto_hash_sha256_init(&digest->state);
  digest->gathered = 0;
}

static void finish(struct digest *digest, char hash[CHARGE_HASH_SIZE]) {
  uint8_t bytes[crypto_hash_sha256_BYTES];
  flush(digest);
  crypto_hash_sha256_final(&digest->state, bytes);
  sodium_bin2hex(hash, CHARGE_HASH_SIZE, bytes, sizeof bytes);
}

static int seal_digest(struct ledger *ledger, int64_t subject, char hash[CHARGE_HASH_SIZE]) {
  static const struct {
    const char *table;
    enum statement rows;
  } terms[] = {{"dp_ledger", SEAL_OF_LEDGER},
               {"dp_tier", SEAL_OF_TIERS},
               {"dp_policy", SEAL_OF_POLICY}},
    orders[] = {{"dp_order", SEAL_OF_ORDERS}},
    release[] = {{"dp_release", SEAL_OF_RELEASE},
                 {"dp_publication", SEAL_OF_PUBLICATIONS},
                 {"dp_value", SEAL_OF_VALUES},
                 {"dp_path", SEAL_OF_PATH}};
  struct digest digest;
  begin(&digest);
  if (subject == SEAL_TERMS) {
    for (int i = 0; i < 3; i++)
      add_rows(ledger, &digest, terms[i].table, statement_bind(ledger, terms[i].rows, ""));
  } else if (subject == SEAL_ORDERS) {
    add_rows(ledger, &digest, orders->table, statement_bind(ledger, orders->rows, ""));
  } else {
    for (int i = 0; i < 4; i++)
      add_rows(ledger, &digest, release[i].table,
               statement_bind(ledger, release[i].rows, "i", subject));
  }
  finish(&digest, hash);
  return !error_is_set(ledger->error);
}

static int seal_books(struct ledger *ledger, char hash[CHARGE_HASH_SIZE]) {
  struct digest digest;
  begin(&digest);
  add_rows(ledger, &digest, "dp_budget", statement_bind(ledger, SEAL_OF_BUDGETS, ""));
  finish(&digest, hash);
  return !error_is_set(ledger->error);
}

/* ---- the chain ------------------------------------------------------------------------------- */

static int seal_hash(const struct seal *seal, const char *previous, char hash[CHARGE_HASH_SIZE]) {
  char *text = sqlite3_mprintf("%s\n%lld\n%lld\n%s\n%s\n%lld\n%s\n%s\n", previous,
                               (long long)seal->id, (long long)seal->subject, seal->digest,
                               seal->books, (long long)seal->charge_id, seal->charge, seal->at);
  if (!text) return 0;
  text_hash(text, strlen(text), hash);
  sqlite3_free(text);
  return 1;
}

/* Whether the last seal of a subject has this digest. */
static int is_sealed(struct ledger *ledger, int64_t subject, const char *digest) {
  sqlite3_stmt *row = statement_bind(ledger, SEAL_FIND, "i", subject);
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 0);
  int same = stored && strcmp(stored, digest) == 0;
  sqlite3_reset(row);
  return same;
}

static int append(struct ledger *ledger, int64_t subject) {
  char digest[CHARGE_HASH_SIZE], books[CHARGE_HASH_SIZE], hash[CHARGE_HASH_SIZE];
  if (!seal_digest(ledger, subject, digest) || !seal_books(ledger, books)) return 0;
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LAST, "");
  if (!statement_row(ledger, row)) return 0;
  char *previous = column_copy(ledger, row, 1), *charge = column_copy(ledger, row, 3),
       *at = column_copy(ledger, row, 5);
  int64_t last = sqlite3_column_int64(row, 0);
  if (last < 0 || last >= LEDGER_MOST_ROWS) last = ledger_fail_damaged(ledger, "dp_seal");
  struct seal seal = {last + 1, subject, digest, books, sqlite3_column_int64(row, 2), charge, at};
  const char *last_books = (const char *)sqlite3_column_text(row, 4);
  int same_books = last_books && strcmp(last_books, books) == 0;
  sqlite3_reset(row);
  if (!error_is_set(ledger->error) && !(same_books && is_sealed(ledger, subject, digest))) {
    if (!seal_hash(&seal, previous ? previous : "", hash)) ledger_fail(ledger, "out of memory");
    statement_run(ledger, SEAL_INSERT, "iississ", seal.id, subject, digest, books, seal.charge_id,
                  at, hash);
  }
  sqlite3_free(previous);
  sqlite3_free(charge);
  sqlite3_free(at);
  return !error_is_set(ledger->error);
}

void seal_touch(struct ledger *ledger, int64_t subject) {
  struct touched *touched = &ledger->touched;
  for (int i = touched->count; i > 0 && i > touched->count - 4; i--) { /* a subject may be twice */
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

int seal_all(struct ledger *ledger) {
  seal_touch(ledger, SEAL_TERMS);
  seal_touch(ledger, SEAL_ORDERS);
  sqlite3_stmt *row = statement_bind(ledger, RELEASE_EACH, "");
  while (statement_row(ledger, row)) seal_touch(ledger, sqlite3_column_int64(row, 0));
  return !error_is_set(ledger->error);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int seal_check(struct ledger *ledger, int64_t subject) {
  char digest[CHARGE_HASH_SIZE];
  return seal_digest(ledger, subject, digest) && is_sealed(ledger, subject, digest);
}

static int seal_check_books(struct ledger *ledger) {
  char books[CHARGE_HASH_SIZE];
  sqlite3_stmt *row = seal_books(ledger, books) ? statement_bind(ledger, SEAL_LAST, "") : 0;
  if (!statement_row(ledger, row)) return 0;
  const char *stored = (const char *)sqlite3_column_text(row, 4);
  int same = stored && strcmp(stored, books) == 0;
  sqlite3_reset(row);
  return same;
}

/* ---- verification ---------------------------------------------------------------------------- */

static const char *text_of(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

/* The chain itself: nothing is missing, every hash follows, charges are sealed in their order. */
static char *check_chain(struct ledger *ledger) {
  char hash[CHARGE_HASH_SIZE] = "", *found = 0;
  int64_t last_charge = 0;
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LIST, "");
  for (int64_t expected = 1; !found && statement_row(ledger, row); expected++) {
    struct seal seal = {sqlite3_column_int64(row, 0),
                        sqlite3_column_int64(row, 1),
                        text_of(row, 2),
                        text_of(row, 3),
                        sqlite3_column_int64(row, 4),
                        text_of(row, 5),
                        text_of(row, 6)};
    if (!seal_hash(&seal, hash, hash)) {
      ledger_fail(ledger, "out of memory");
    } else if (seal.id != expected) {
      found = ledger_discrepancy(ledger, "dp_seal: row %lld is missing", (long long)expected);
    } else if (strcmp(hash, text_of(row, 7)) != 0 || seal.charge_id < last_charge ||
               !sqlite3_column_int(row, 8)) {
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

/* Whether every subject is what its last seal says; those without a seal. */
static char *check_subjects(struct ledger *ledger) {
  char *found = 0;
  if (!seal_check(ledger, SEAL_TERMS))
    return ledger_discrepancy(ledger, "dp_seal: dp_ledger, dp_tier or dp_policy was changed");
  if (!seal_check(ledger, SEAL_ORDERS))
    return ledger_discrepancy(ledger, "dp_seal: dp_order was changed");
  if (!seal_check_books(ledger))
    return ledger_discrepancy(ledger, "dp_seal: dp_budget was changed");
  sqlite3_stmt *row = statement_bind(ledger, SEAL_LATEST, "");
  while (!found && statement_row(ledger, row)) {
    char digest[CHARGE_HASH_SIZE];
    int64_t subject = sqlite3_column_int64(row, 0);
    if (seal_digest(ledger, subject, digest) && strcmp(digest, text_of(row, 1)) != 0)
      found = ledger_discrepancy(
          ledger,
          "dp_seal: the rows of release %lld ('%s') in dp_release, dp_publication, dp_value or "
          "dp_path were changed",
          (long long)subject, text_of(row, 2));
  }
  if (row) sqlite3_reset(row);
  return found;
}

/* What one query finds: the table and what is wrong there. */
static char *check_query(struct ledger *ledger, enum statement which) {
  sqlite3_stmt *row = statement_bind(ledger, which, "");
  char *found = 0;
  if (statement_row(ledger, row))
    found = ledger_discrepancy(ledger, "%s: '%s' %s", text_of(row, 0), text_of(row, 1),
                               text_of(row, 2));
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
  if (error_is_set(ledger->error)) { /* what was found may only be what could not be read */
    sqlite3_free(found);
    found = 0;
  }
  return found;
}

/* ---- trust ----------------------------------------------------------------------------------- */

int ledger_trust_release(struct ledger *ledger, int64_t id) {
  if (error_is_set(ledger->error)) return 0;
  if (is_touched(ledger, id) || seal_check(ledger, id)) return 1;
  return ledger_fail(
      ledger,
      "the privacy ledger '%s' is damaged: the rows of release %lld are not what its "
      "last seal says (run dp_verify(), and restore the ledger from a backup)",
      ledger->path, (long long)id);
}

int seal_trust_books(struct ledger *ledger) {
  if (error_is_set(ledger->error) || ledger->touched.trusted) return !error_is_set(ledger->error);
  if (!seal_check(ledger, SEAL_TERMS))
    return ledger_fail_damaged(ledger, "dp_tier, dp_policy or dp_ledger");
  if (!seal_check_books(ledger)) return ledger_fail_damaged(ledger, "dp_budget");
  ledger->touched.trusted = 1;
  return 1;
}
