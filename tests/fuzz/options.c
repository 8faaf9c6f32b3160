/* options.c: a fuzz target for the JSON options of releases, plans and dp_init(). The first byte of
** the input chooses the function and the kind. The rest of the input is the text of the options.
**
** A plan must never change the ledger. A release must either fail and leave the ledger unchanged,
** or have a charge. */
#include "fuzz.h"

static const char *const kinds[] = {
    "count",     "sum",     "avg",        "stddev",       "quantile",  "median",
    "histogram", "vec_sum", "vec_avg",    "group_count",  "group_sum", "group_avg",
    "ou_sum",    "ou_avg",  "ou_vec_sum", "ou_group_sum", "bounds"};

static const char *const columns[] = {"x", "x", "x", "x", "x", "x",    "x", "v",   "v",
                                      "k", "k, x", "k, x", "x", "x", "v", "k, x", "x"};

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const uint8_t *text, size_t size) {
  sqlite3_stmt *statement;
  expect(sqlite3_prepare_v2(db, sql, -1, &statement, 0) == SQLITE_OK, sql, sqlite3_errmsg(db));
  sqlite3_bind_text(statement, 1, (const char *)text, (int)size, SQLITE_STATIC);
  return statement;
}

/* Runs a statement, and returns whether it succeeded. */
static int run(sqlite3_stmt *statement) {
  int rc = sqlite3_step(statement);
  expect(sqlite3_finalize(statement) == (rc == SQLITE_ROW ? SQLITE_OK : rc), "finalize", "");
  return rc == SQLITE_ROW;
}

static void create(const uint8_t *text, size_t size) {
  sqlite3 *db = fuzz_open();
  if (memmem(text, size, "path", 4)) size = 0; /* the target must not create files */
  if (run(prepare(db, "SELECT dp_init(?)", text, size))) expect_sound(db);
  expect(sqlite3_close(db) == SQLITE_OK, "close", "");
}

/* Passes the text to dp_mix() as a public kernel. The ledger is new and contains a release of a
** symbol. */
static void mix(const uint8_t *text, size_t size) {
  sqlite3 *db = fuzz_open();
  must(db, "CREATE TABLE t(u, k); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'b');"
           "SELECT dp_init(); SELECT dp_protect('t', 'u');"
           "SELECT dp_tier('inner', 1, 30, 1e-6), dp_tier('outer', 0.1, 30, 1e-6);"
           "SELECT dp_choice('inner', k, '[\"a\",\"b\"]', 'c') FROM t");
  int mixed = run(prepare(db, "SELECT dp_mix('c', 'outer', ?)", text, size));
  expect(ask_number(db, "SELECT count(*) FROM dp_publication") == 1 + mixed,
         "published where mixed", "");
  expect_sound(db);
  expect(sqlite3_close(db) == SQLITE_OK, "close", "");
}

/* Passes the options of a model to dp_plan() only, because training with n = 1e9 would take too
** long. */
static void plan_model(const uint8_t *text, size_t size) {
  sqlite3 *db = fuzz_open();
  must(db, "SELECT dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}');"
           "SELECT dp_tier('inner', 1, 30, 1e-5, 'rdp', 1e-6)");
  run(prepare(db, "SELECT dp_plan('inner', 'sgd', NULL, ?)", text, size));
  expect(ask_number(db, "SELECT count(*) FROM dp_charge") == 0, "a plan charges nothing", "sgd");
  expect_sound(db);
  expect(sqlite3_close(db) == SQLITE_OK, "close", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int runs;
  if (size == 0 || size > 4096) return 0;
  int what = data[0] & 15, how = data[0] >> 4;
  data++, size--;
  if (how == 15) {
    create(data, size);
    return 0;
  }
  if (how == 13) {
    plan_model(data, size);
    return 0;
  }
  if (runs++ % 256 == 0) {
    sqlite3_close(db);
    db = fuzz_story();
  }
  long before = ask_number(db, "SELECT count(*) FROM dp_charge");
  if (how == 14) {
    mix(data, size);
    return 0;
  }
  char sql[200];
  if (how < 10) {
    snprintf(sql, sizeof sql, "SELECT dp_plan('%c', '%s', NULL, ?)", 'a' + how % 3, kinds[what]);
    if (how == 9) snprintf(sql, sizeof sql, "SELECT dp_plan(?)");
    run(prepare(db, sql, data, size));
    expect(before == ask_number(db, "SELECT count(*) FROM dp_charge"), "a plan charges nothing",
           sql);
  } else {
    snprintf(sql, sizeof sql, "SELECT dp_release('%c', '%s', 'SELECT %s FROM t', ?)", 'a' + how % 3,
             kinds[what], columns[what]);
    long releases = ask_number(db, "SELECT count(*) FROM dp_release WHERE state <> 'released'");
    int done = run(prepare(db, sql, data, size));
    long paid = ask_number(db, "SELECT count(*) FROM dp_charge") - before;
    long published = ask_number(db, "SELECT count(*) FROM dp_publication p WHERE NOT EXISTS"
                                    " (SELECT 1 FROM dp_charge c WHERE c.release = p.release)");
    expect(published == 0, "every publication is charged", sql);
    expect(done || paid == 0, "a refusal charges nothing", sql);
    expect(releases == ask_number(db, "SELECT count(*) FROM dp_release WHERE state <> 'released'"),
           "no release is left unfinished", sql);
  }
  if (runs % 16 == 0) expect_sound(db);
  return 0;
}
