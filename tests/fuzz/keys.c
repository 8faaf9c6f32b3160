/* keys.c: a fuzz target for the keys of groups. The first byte of the input chooses between private
** keys and public keys. Public keys are the keys of the first rows. The rest of the input is a list
** of rows. Each row has one byte for the type and the unit, one byte for the length of the key, and
** the bytes of the key.
**
** The answer must be valid JSON whose keys are the keys in dp_value, whatever the texts of the keys
** are. dp_diffuse() must keep these keys. */
#include "fuzz.h"

#define MOST_ROWS 40

static void fill(sqlite3 *db, const uint8_t *data, size_t size) {
  sqlite3_stmt *insert;
  must(db, "DELETE FROM t");
  sqlite3_prepare_v2(db, "INSERT INTO t(u, k, x) VALUES (?, ?, ?)", -1, &insert, 0);
  for (int i = 0; i < MOST_ROWS && size >= 2; i++) {
    int type = data[0] & 7, unit = data[0] >> 3;
    size_t length = data[1];
    data += 2, size -= 2;
    if (length > size) length = size;
    sqlite3_int64 integer = 0;
    double real = 0;
    memcpy(&integer, data, length < 8 ? length : 8);
    memcpy(&real, data, length < 8 ? length : 8);
    sqlite3_bind_int(insert, 1, unit);
    if (type == 0) sqlite3_bind_null(insert, 2);
    if (type == 1) sqlite3_bind_int64(insert, 2, integer);
    if (type == 2) sqlite3_bind_double(insert, 2, real);
    if (type == 3)
      sqlite3_bind_blob(insert, 2, length ? (const void *)data : "", (int)length, SQLITE_STATIC);
    if (type == 4) sqlite3_bind_text16(insert, 2, data, (int)(length & ~1u), SQLITE_TRANSIENT);
    if (type > 4) sqlite3_bind_text(insert, 2, (const char *)data, (int)length, SQLITE_STATIC);
    sqlite3_bind_double(insert, 3, real);
    sqlite3_step(insert);
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
    data += length, size -= length;
  }
  sqlite3_finalize(insert);
}

/* Checks that an answer is a JSON object with as many keys as dp_value has rows. */
static void check_answer(sqlite3 *db, const char *answer, const char *tier) {
  char *sql = sqlite3_mprintf("SELECT json_valid(%Q) AND json_type(%Q) = 'object'", answer, answer);
  expect(ask_number(db, sql) == 1, "valid JSON", answer);
  sqlite3_free(sql);
  sql =
      sqlite3_mprintf("SELECT (SELECT count(*) FROM json_each(%Q)) = (SELECT count(*) FROM dp_value"
                      " WHERE release = (SELECT n FROM name) AND tier = %Q)",
                      answer, tier);
  expect(ask_number(db, sql) == 1, "one value for each key", answer);
  sqlite3_free(sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int runs;
  if (size == 0 || size > 4096) return 0;
  if (runs++ % 64 == 0) {
    sqlite3_close(db);
    db = fuzz_story();
    must(db, "CREATE TABLE name(n); INSERT INTO name VALUES (0)");
  }
  must(db, "UPDATE name SET n = 'n' || rowid || '-' || (SELECT count(*) FROM dp_release)");
  static const char *const statements[] = {
      "SELECT dp_group_count('a', k, 1, %Q) FROM t",
      "SELECT dp_group_sum('a', k, x, 1e9, json_object('name', %Q, 'max_groups', 3)) FROM t",
      "SELECT dp_group_avg('a', k, x, -1, 1, json_object('name', %Q, 'keys', json(%Q))) FROM t",
      "SELECT dp_ou_group_count('a', k, 100, 1, json_object('name', %Q, 'keys', json(%Q)))"
      " FROM t"};
  static const char *const keys[] = {
      "SELECT json_group_array(k) FROM (SELECT k FROM t WHERE typeof(k) <> 'blob' LIMIT 9)",
      "SELECT json_group_array(k) FROM (SELECT k FROM t WHERE typeof(k) = 'text' LIMIT 9)"};
  fill(db, data + 1, size - 1);
  char *name = ask(db, "SELECT n FROM name"), *listed = ask(db, keys[data[0] & 1]);
  char *sql = sqlite3_mprintf(statements[data[0] & 3], name, listed);
  char *answer = ask(db, sql);
  sqlite3_free(sql);
  sqlite3_free(listed);
  sqlite3_free(name);
  if (answer) {
    check_answer(db, answer, "a");
    char *outer = ask(db, "SELECT dp_diffuse((SELECT n FROM name), 'b')");
    if (outer) check_answer(db, outer, "b");
    if (!outer) {
      expect(strstr(sqlite3_errmsg(db), "would exceed") != 0, "dp_diffuse", sqlite3_errmsg(db));
      runs = 0; /* the next input gets a fresh database */
    }
    sqlite3_free(outer);
    char *again = ask(db, "SELECT dp_diffuse((SELECT n FROM name), 'a')");
    expect(again && strcmp(again, answer) == 0, "the same again", answer);
    sqlite3_free(again);
    must(db, "SELECT dp_discard((SELECT n FROM name))");
  } else {
    expect(sqlite3_errcode(db) == SQLITE_ERROR, "a refusal", sqlite3_errmsg(db));
  }
  sqlite3_free(answer);
  if (runs % 8 == 0) expect_sound(db);
  return 0;
}
