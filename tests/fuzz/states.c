/* states.c: a fuzz target for states of shards that an attacker wrote. The first byte of the input
** makes three choices. First, the rest of the input is either a whole state or a state without the
** SHA-256 at its end. In the second case the target adds the correct SHA-256, because random
** changes of the input would never produce it. Second, dp_merge() gets this state alone, twice with
** other serial numbers and shards, or after an intact state. Third, the byte chooses the options.
**
** dp_merge() must either report an error and charge nothing, or release finite numbers. */
#include <sodium.h>

#include "fuzz.h"

#define MOST 65536

enum { SIGN = 1, TWICE = 2, HONEST_FIRST = 4, QUANTILE = 8, SHRUNK = 16 };

static size_t sign(unsigned char *state, size_t size) {
  crypto_hash_sha256(state + size, state, size);
  return size + crypto_hash_sha256_BYTES;
}

/* Makes the state one of another shard, if it names a shard, with another serial number. */
static void change(unsigned char *state, size_t size) {
  if (size < 48 + crypto_hash_sha256_BYTES) return;
  size_t shard = 48 + (size_t)(state[12] | state[13] << 8) + 4; /* behind small parameters */
  state[32] ^= 1;
  if (shard < size - crypto_hash_sha256_BYTES && state[shard - 4]) state[shard] ^= 1;
  sign(state, size - crypto_hash_sha256_BYTES);
}

static void insert(sqlite3 *db, const unsigned char *state, size_t size) {
  sqlite3_stmt *insert;
  sqlite3_prepare_v2(db, "INSERT INTO s VALUES (?)", -1, &insert, 0);
  sqlite3_bind_blob64(insert, 1, state, size, SQLITE_TRANSIENT);
  sqlite3_step(insert);
  sqlite3_finalize(insert);
}

static const char honest[] =
    "INSERT INTO s SELECT dp_partial('group_sum', 'SELECT k, x FROM t', '{\"clip\":9}')";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int runs;
  if (size < 1 || size > MOST) return 0;
  if (runs++ % 64 == 0) {
    sqlite3_close(db);
    db = fuzz_story();
    must(db, "CREATE TABLE s(state)");
  }
  int how = *data++;
  size--;
  unsigned char *state = malloc(size + crypto_hash_sha256_BYTES);
  expect(state != 0, "memory", "");
  memcpy(state, data, size);
  if (how & SIGN) size = sign(state, size);
  must(db, "DELETE FROM s");
  if (how & HONEST_FIRST) must(db, honest);
  insert(db, state, size);
  if (how & TWICE) change(state, size);
  if (how & TWICE) insert(db, state, size);
  free(state);
  long charges = ask_number(db, "SELECT count(*) FROM dp_charge");
  char *answer =
      ask(db, how & QUANTILE ? "SELECT dp_merge('a', dp_states(state), '{\"q\":[0,0.5]}') FROM s"
              : how & SHRUNK ? "SELECT dp_merge('a', dp_states(state), '{\"radius\":9}') FROM s"
                             : "SELECT dp_merge('a', dp_states(state)) FROM s");
  if (answer) {
    expect(ask_number(db, "SELECT count(*) FROM dp_charge") > charges, "a charge", answer);
    /* An infinity would make the answer invalid JSON. */
    char *valid = sqlite3_mprintf("SELECT json_valid(%Q)", answer);
    expect(ask_number(db, valid) == 1, "finite numbers", answer);
    sqlite3_free(valid);
  } else {
    const char *message = sqlite3_errmsg(db);
    expect(strncmp(message, "dp_merge: ", 10) == 0 || strncmp(message, "dp_states: ", 11) == 0,
           "a sentence", message);
    int full = strstr(message, "would exceed") != 0;
    expect(ask_number(db, "SELECT count(*) FROM dp_charge") == charges, "no charge", "");
    if (full) runs = 0; /* the next input gets a fresh ledger */
  }
  sqlite3_free(answer);
  if (runs % 8 == 0) expect_sound(db);
  return 0;
}
