/* vectors.c: a fuzz target for vectors in JSON arrays and blobs. The first byte of the input
** chooses the type and the dimension. The rest of the input is the value.
**
** The parser (base/sql_text.h) must return finite numbers. If the value is malformed, all
** numbers must be zero. For JSON, the numbers must agree with strtod(). dp_vec_sum() must return an
** answer for every value that a row of a table holds. */
#include <math.h>

#include "base/sql_text.h"
#include "fuzz.h"

#define MOST 15

static void check_numbers(sqlite3_context *context, int argc, sqlite3_value **argv) {
  double numbers[MOST];
  int count = sqlite3_value_int(argv[1]);
  (void)argc;
  int sound = vector_text_read(argv[0], numbers, count);
  for (int i = 0; i < count; i++) {
    expect(isfinite(numbers[i]), "finite", "");
    expect(sound || numbers[i] == 0, "zero where it is malformed", "");
  }
  if (sqlite3_value_type(argv[0]) != SQLITE_TEXT) return;
  const char *text = (const char *)sqlite3_value_text(argv[0]);
  double list[MOST];
  int listed = vector_text_list(text, list, MOST);
  expect(listed >= 0 && listed <= MOST, "room", text);
  for (int i = 0; i < listed; i++) {
    text += strcspn(text, "-0123456789");
    char *end;
    double exact = strtod(text, &end);
    double error = fabs(list[i] - exact);
    expect(error <= fabs(exact) * 0x1p-48 || error <= 0x1p-1060, "strtod", text);
    text = end;
  }
  sqlite3_result_int(context, sound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int runs;
  if (size == 0 || size > 4096) return 0;
  if (runs++ % 256 == 0) {
    sqlite3_close(db);
    db = fuzz_story();
    sqlite3_create_function(db, "check_numbers", 2, SQLITE_UTF8, 0, check_numbers, 0, 0);
  }
  int dimension = 1 + (data[0] & 127) % MOST, is_text = data[0] >> 7;
  data++, size--;
  const char *const statements[] = {"SELECT check_numbers(?1, ?2)",
                                    "UPDATE t SET v = ?1 WHERE k = 2 RETURNING ?2",
                                    "SELECT dp_vec_sum('a', v, ?2, 10) FROM t"};
  for (int i = 0; i < (runs % 8 ? 1 : 3); i++) {
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(db, statements[i], -1, &statement, 0);
    if (is_text) {
      sqlite3_bind_text(statement, 1, (const char *)data, (int)size, SQLITE_STATIC);
    } else {
      sqlite3_bind_blob(statement, 1, size ? (const void *)data : "", (int)size, SQLITE_STATIC);
    }
    sqlite3_bind_int(statement, 2, dimension);
    expect(sqlite3_step(statement) == SQLITE_ROW, "data is no error", sqlite3_errmsg(db));
    if (i == 2) {
      const char *answer = (const char *)sqlite3_column_text(statement, 0);
      expect(answer && answer[0] == '[' && !strstr(answer, "nan") && !strstr(answer, "inf") &&
                 !strstr(answer, "Inf"),
             "an array of numbers", answer);
    }
    expect(sqlite3_finalize(statement) == SQLITE_OK, "a statement ends", sqlite3_errmsg(db));
  }
  if (runs % 64 == 0) expect_sound(db);
  return 0;
}
