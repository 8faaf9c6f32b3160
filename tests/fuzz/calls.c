/* calls.c: a fuzz target for the SQL functions. The input chooses a sequence of templates of
** statements, and a value for each placeholder in these templates. All statements run on one
** in-memory database.
**
** After each statement, the target checks that every publication has a charge, that an answer of a
** new release has a charge of its own, and that a refused statement has left no publication. At the
** end, dp_verify() must return 'ok' and the connection must close. */
#include "fuzz.h"

/* The placeholders: %t tier, %n name or options, %g options of a model, %x value, %c
** bound, %r rate, %k kind, %q query, %u unit, %l list of tiers. */
static const char *const templates[] = {
    "SELECT dp_init(), dp_protect('t', 'u')",
    "SELECT dp_init('{\"protects\":\"row\"}'), dp_protect('t')",
    "SELECT dp_init('{\"adjacency\":\"replace\"}'), dp_protect('t', 'u')",
    "SELECT dp_tier(%t, %r, %c, %d)",
    "SELECT dp_tier(%t, %r, %c, %d, 'gdp')",
    "SELECT dp_tier(%t, %r, %c, %d, 'rdp', %d)",
    "SELECT dp_count(%t, %x, %c, %n) FROM t",
    "SELECT dp_count_distinct(%t, %n) FROM t",
    "SELECT dp_sum(%t, %x, %c, %n) FROM t",
    "SELECT dp_avg(%t, %x, %c, %c, %n) FROM t",
    "SELECT dp_var(%t, %x, 0, %c, %n) FROM t",
    "SELECT dp_quantile(%t, %x, '[0.25,0.5]', 0, %c, %n) FROM t",
    "SELECT dp_median(%t, %x, 0, %c, '{\"bins\":16}') FROM t",
    "SELECT dp_histogram(%t, %x, 0, %c, 4, '{\"clip\":1}') FROM t",
    "SELECT dp_bounds(%t, %x, %n) FROM t",
    "SELECT dp_vec_sum(%t, %x, 2, %c, %n) FROM t",
    "SELECT dp_vec_avg(%t, v, 2, %c, %n) FROM t",
    "SELECT dp_group_count(%t, %x, 1, %n) FROM t",
    "SELECT dp_group_sum(%t, k, %x, %c, '{\"keys\":[1,\"a\"],\"name\":\"n\"}') FROM t",
    "SELECT dp_group_avg(%t, k, %x, 0, %c, %n) FROM t",
    "SELECT dp_ou_sum(%t, %x, %c, %c, %n) FROM t",
    "SELECT dp_ou_avg(%t, %x, 0, %c, %c, %n) FROM t",
    "SELECT dp_ou_vec_sum(%t, v, 2, %c, %c, %n) FROM t",
    "SELECT dp_ou_vec_avg(%t, v, 2, %c, %c, %n) FROM t",
    "SELECT dp_ou_quantile(%t, %x, '[0.25,0.5]', 0, %c, %c, %n) FROM t",
    "SELECT dp_sum(%t, %x, %c) FROM t GROUP BY k",
    "SELECT dp_sum(%t, %x, %c, %n) FROM t WHERE 0",
    "SELECT dp_sum(%t, abs(-9223372036854775808), %c, %n) FROM t",
    "SELECT dp_sum(%t, %x, %c, %n), abs(min(0, count(*) - 1) - 9223372036854775807 - 1) FROM t",
    "SELECT dp_sum(%t, x + (SELECT dp_count(%t, 1, 1)), %c, %n) FROM t",
    "CREATE TABLE s AS SELECT dp_sum(%t, %x, %c, %n) FROM t",
    "SELECT dp_release(%t, %k, %q, %n)",
    "SELECT dp_release(%t, %k, %q)",
    "SELECT dp_diffuse(%m, %t)",
    "SELECT dp_diffuse(name, %t) FROM dp_release",
    "SELECT dp_discard(%m)",
    "SELECT dp_interval(%m, %t, %x, %d)",
    "SELECT dp_clipping(%m, %t)",
    "SELECT dp_exposure(%l)",
    "SELECT dp_certificate()",
    "SELECT dp_plan(%t, %k, %c, %n)",
    "SELECT dp_plan(%t, %k, NULL, %n)",
    "SELECT dp_plan(json_array(json_object('tier', %t, 'kind', %k, 'clip', %c)))",
    "SELECT * FROM dp_tier JOIN dp_budget ON tier = name",
    "SELECT * FROM dp_value WHERE release = %m AND tier = %t",
    "SELECT * FROM dp_release JOIN dp_publication ON release = name JOIN dp_charge USING (release)",
    "SELECT * FROM dp_rdp WHERE tier = %t",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT p",
    "ROLLBACK TO p",
    "DELETE FROM t WHERE u = 1",
    "INSERT INTO t VALUES (%u, %x, %x, %x)",
    "SELECT dp_tier(%t, %r, %c, 0, 'pure')",
    "SELECT dp_sum(%t, %x, %c, '{\"mechanism\":\"laplace\",\"name\":\"n\"}') FROM t",
    "SELECT dp_count(%t, %x, %c, '{\"mechanism\":\"laplace\",\"refine\":true,\"name\":\"m\"}') "
    "FROM t",
    "SELECT dp_choice(%t, %x, '[1,\"a\",null]', %n) FROM t",
    "SELECT dp_choice(%t, k, '[\"a\"]', '{\"mechanism\":\"response\",\"name\":\"m\"}') FROM t",
    "SELECT dp_mix(%m, %t, %j)",
    "SELECT dp_mix(name, %t, %j) FROM dp_release",
    "SELECT dp_rate(%c, %d), dp_sigma(%r, %c), dp_epsilon(%r, %d), dp_delta(%r, %c)",
    "SELECT dp_partial(%k, %q, %n)",
    "SELECT dp_partial(%k, %q), dp_partial(%k, %x, %n) FROM t",
    "CREATE TABLE IF NOT EXISTS p AS SELECT dp_partial(%k, %q, %n) AS state",
    "SELECT dp_merge(%t, dp_states(state), %n) FROM p",
    "SELECT dp_merge(%t, dp_states(dp_partial(%k, %q, %n)), %m)",
    "SELECT dp_merge(%t, dp_states(%x), %n) FROM t",
    "SELECT dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}'), dp_protect('t')",
    "SELECT dp_release(%t, 'sgd', 'SELECT x, v FROM t', %g)",
    "SELECT dp_predict(%m, %t, %x), dp_sgd_profile(%m)",
};

struct words {
  char letter;
  const char *words[24]; /* the first null ends the list */
};

static const struct words places[] = {
    {'t', {"'a'", "'b'", "'c'", "'d'", "'e'", "NULL", "''"}},
    {'n',
     {"'n'", "'m'", "NULL", "'{}'", "'{\"name\":\"n\",\"refine\":true}'", "'{\"weight\":0.5}'",
      "'{\"name\":\"m\",\"clip\":3}'",
      "'{\"clip\":2,\"lo\":0,\"hi\":9,\"q\":0.5,\"dim\":2,\"bins\":8}'",
      "'{\"name\":\"o\",\"keys\":[1,2,\"a\"]}'",
      "'{\"clip\":2,\"lo\":0,\"hi\":9,\"radius\":5,\"name\":\"r\"}'", "'{\"half_width\":5}'",
      "'{\"name\":\"n\",\"theta\":1,\"rho\":2}'"}},
    {'m', {"'n'", "'m'", "'o'", "'r'", "'release-1'", "'release-2'", "NULL", "x'6e'"}},
    {'x',
     {"x", "k", "v", "u", "NULL", "1", "-9223372036854775808", "1e308 * 10", "'text'",
      "zeroblob(8)", "rowid", "random()"}},
    {'c', {"1", "2", "10", "100", "0", "-1", "1e-150", "1e150", "1e308", "NULL", "'3'", "0.1"}},
    {'r', {"0.001", "0.01", "1e-6", "1", "1e6", "1e-12", "0", "NULL", "1e-9", "100"}},
    {'d', {"1e-6", "1e-9", "0.5", "1e-300", "0", "1", "NULL", "1e-7"}},
    {'k',
     {"'count'", "'sum'", "'avg'", "'quantile'", "'vec_sum'", "'group_count'", "'group_sum'",
      "'ou_sum'", "'histogram'", "'bounds'", "'var'", "'count_distinct'", "'group_var'",
      "'group_histogram'", "'group_quantile'", "'group_count_distinct'", "'ou_group_median'",
      "'x'"}},
    {'q',
     {"'SELECT x FROM t'", "'SELECT x, u FROM t'", "'SELECT k, x FROM t'", "'VALUES (1, 2)'",
      "'SELECT v FROM t WHERE 0'", "'SELECT dp_sum(''a'', 1, 1), 1'", "'DELETE FROM t'",
      "'SELECT abs(-9223372036854775808) FROM t'", "'SELECT x FROM t; SELECT 1'",
      "'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 99) SELECT i"
      " FROM n'"}},
    {'u', {"u", "1", "NULL", "x", "'one'", "x'01'", "1.0"}},
    {'j',
     {"'[[1,1,0.5],[1,\"a\",0.5],[\"a\",1,0.25],[\"a\",\"a\",0.75],[null,1,1]]'",
      "'[[\"a\",\"b\",1]]'",
      "'[[1,\"b\",1],[\"a\",\"b\",1],[\"null\",\"c\",1],[\"b\",\"a\",1],[\"c\",\"b\",1]]'",
      "'[{\"x\":\"a\",\"y\":\"a\",\"p\":1},{\"x\":1,\"y\":2,\"p\":1}]'", "'[[\"a\",\"b\",0.5]]'",
      "NULL",
      "(SELECT json_group_array(json_array(value, 1 - value, 1.0)) FROM json_each('[0,1]'))"}},
    {'o', {"'huber'", "'squared'", "'logistic'", "NULL", "'x'"}},
    {'g',
     {"'{\"name\":\"n\",\"n\":3,\"dim\":2,\"clip\":1,\"radius\":1,\"threshold\":1}'",
      "'{\"name\":\"n\",\"n\":3,\"dim\":2,\"clip\":1,\"radius\":1,\"bound\":1,\"loss\":\"squared\"}"
      "'",
      "'{\"name\":\"m\",\"n\":2,\"dim\":2,\"clip\":9,\"radius\":1,\"loss\":\"logistic\",\"public_"
      "rows\":3}'",
      "'{\"n\":2,\"dim\":2,\"clip\":1,\"radius\":0.1,\"loss\":\"logistic\",\"stop\":\"random\"}'",
      "'{\"n\":4,\"dim\":2,\"clip\":1,\"radius\":1,\"loss\":\"logistic\",\"eta\":1,\"l2\":0.5}'",
      "'{\"n\":9,\"dim\":1,\"clip\":1e3,\"radius\":1e-3,\"loss\":\"logistic\",\"weight\":0.1}'",
      "NULL"}},
    {'l', {"'a'", "'a,b'", "'b, c,a'", "''", "','", "NULL", "'a,a'", "'x'"}},
};

struct input {
  const uint8_t *data;
  size_t size;
};

static unsigned next(struct input *input) {
  if (!input->size) return 0;
  input->size--;
  return *input->data++;
}

static void append_word(sqlite3_str *sql, struct input *input, char letter) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (places[i].letter != letter) continue;
    unsigned count = 0;
    while (places[i].words[count]) count++;
    sqlite3_str_appendall(sql, places[i].words[next(input) % count]);
  }
}

static char *statement_of(struct input *input) {
  const char *template = templates[next(input) % (sizeof templates / sizeof *templates)];
  sqlite3_str *sql = sqlite3_str_new(0);
  for (; *template; template ++) {
    if (*template == '%') {
      append_word(sql, input, *++template);
    } else {
      sqlite3_str_appendchar(sql, 1, *template);
    }
  }
  return sqlite3_str_finish(sql);
}

static void check(sqlite3 *db, const char *sql) {
  char *published = ask(db, "SELECT count(*) FROM dp_publication p WHERE NOT EXISTS"
                            " (SELECT 1 FROM dp_charge c WHERE c.release = p.release)");
  if (published) expect(atol(published) == 0, "every publication is charged", sql);
  sqlite3_free(published);
  char *unfinished = ask(db, "SELECT count(*) FROM dp_release WHERE state = 'charged'");
  if (unfinished) expect(atol(unfinished) == 0, "no release is left unfinished", sql);
  sqlite3_free(unfinished);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  if (size > 512) return 0;
  sqlite3 *db = next(&input) & 1 ? fuzz_open() : fuzz_story();
  sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS t(u, k, x, v); INSERT INTO t(u, x) VALUES (1, 2)", 0,
               0, 0);
  for (int i = 0; i < 32 && input.size; i++) {
    char *sql = statement_of(&input);
    int trace = getenv("FUZZ_TRACE") != 0;
    if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) {
      const char *message = sqlite3_errmsg(db);
      if (trace) fprintf(stderr, "%s\n  -- %s\n", sql, message);
      expect(strcmp(message, "not an error") != 0 && strcmp(message, "SQL logic error") != 0,
             "a sentence", sql);
    } else if (trace) {
      fprintf(stderr, "%s\n", sql);
    }
    check(db, sql);
    sqlite3_free(sql);
  }
  if (!sqlite3_get_autocommit(db)) must(db, "ROLLBACK");
  char *sound = ask(db, "SELECT dp_verify()");
  if (sound) expect(strcmp(sound, "ok") == 0, "dp_verify()", sound);
  if (!sound)
    expect(strstr(sqlite3_errmsg(db), "no privacy ledger") != 0, "dp_verify()", sqlite3_errmsg(db));
  sqlite3_free(sound);
  expect(sqlite3_close(db) == SQLITE_OK, "close", "");
  return 0;
}
