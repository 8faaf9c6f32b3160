/* page.c: page_write(). page.sql makes the tables of a page from the facts, and page.html is the
** template that they fill. This file has the SQL functions that page.sql needs.
** Tests: tests/report/test_report.py */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "os/os.h"
#include "page_html.h"
#include "page_sql.h"
#include "report/report.h"

SQLITE_EXTENSION_INIT3

/* ---- numbers --------------------------------------------------------------------------------- */

static void result_number(sqlite3_context *context, double x, int digits) {
  char text[40];
  struct number_locale before = locale_plain();
  snprintf(text, sizeof text, "%.*g", digits, x);
  locale_restore(before);
  sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* decimal(x, digits): the number with that many significant digits at most: "0.05", "12" */
static void decimal(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  result_number(context, sqlite3_value_double(argv[0]), sqlite3_value_int(argv[1]));
}

/* scale_end(x): a number at an end of a scale; a whole number has commas between thousands */
static void scale_end(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  double x = sqlite3_value_double(argv[0]);
  if (!(fabs(x) < 1e15 && x == floor(x))) {
    result_number(context, x, 6);
    return;
  }
  char *text = sqlite3_mprintf("%,lld", (sqlite3_int64)x);
  if (text) sqlite3_result_text(context, text, -1, sqlite3_free);
  if (!text) sqlite3_result_error_nomem(context);
}

/* one_in(delta): "1 in 1,000,000", with delta rounded up */
static void one_in(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  double delta = sqlite3_value_double(argv[0]);
  double cases = delta > 0 ? floor(1 / delta * (1 + 1e-9)) : 0;
  if (!(cases >= 2 && cases < 1e15)) {
    result_number(context, delta, 4);
    return;
  }
  char *text = sqlite3_mprintf("1 in %,lld", (sqlite3_int64)cases);
  if (text) sqlite3_result_text(context, text, -1, sqlite3_free);
  if (!text) sqlite3_result_error_nomem(context);
}

/* guess(epsilon, delta): suppose that two neighbouring data sets are equally likely, and that
** somebody guesses from the releases which of the two was used. A bound on how many of 100 such
** guesses are right: 100 (e^epsilon + delta) / (1 + e^epsilon), rounded up to two decimals, or to
** more (at most eight) if the number would otherwise be 100. (Kairouz, Oh and Viswanath 2015,
** Theorem 2.1: two linear inequalities bound the probabilities of a wrong guess under each of the
** two data sets. The sum of the two probabilities is least where both inequalities are
** equalities.) */
static void guess(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  double epsilon = sqlite3_value_double(argv[0]), delta = sqlite3_value_double(argv[1]);
  double right = (1 + delta * exp(-epsilon)) / (1 + exp(-epsilon)), cases = 100;
  for (int decimals = 2; decimals <= 8 && cases >= 100; decimals++) {
    double unit = pow(10, decimals);
    cases = ceil(right * 100 * unit * (1 - 1e-12)) / unit;
  }
  result_number(context, fmin(cases, 100), 10);
}

/* scale_low(low, high), scale_high(low, high): the ends of a scale that contains [low, high] and
** ends at round numbers; NULL if there is no such scale */
static void scale(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  double low = sqlite3_value_double(argv[0]), high = sqlite3_value_double(argv[1]);
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL || !isfinite(low) || !isfinite(high) ||
      !(low < high))
    return;
  double step = pow(10, floor(log10(high - low)));
  if ((high - low) / step < 4) step /= 2;
  sqlite3_result_double(context, sqlite3_user_data(context) ? ceil(high / step) * step
                                                            : floor(low / step) * step);
}

/* ---- the data of the page -------------------------------------------------------------------- */

/* json_value(x): a value as JSON that cannot end the HTML element around it */
static void json_value(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  int type = sqlite3_value_type(argv[0]);
  sqlite3_str *json = sqlite3_str_new(0);
  const char *text = (const char *)sqlite3_value_text(argv[0]);
  if (type == SQLITE_FLOAT) {
    sqlite3_str_appendall(json, NUMBER_TEXT(sqlite3_value_double(argv[0])));
  } else if (type != SQLITE_TEXT) {
    sqlite3_str_appendall(json, text ? text : "null");
  } else {
    sqlite3_str_appendchar(json, 1, '"');
    for (; text && *text; text++) {
      if (*text == '"' || *text == '\\') {
        sqlite3_str_appendf(json, "\\%c", *text);
      } else if ((unsigned char)*text < 0x20 || strchr("<>&", *text)) {
        sqlite3_str_appendf(json, "\\u%04x", (unsigned char)*text);
      } else {
        sqlite3_str_appendchar(json, 1, *text);
      }
    }
    sqlite3_str_appendchar(json, 1, '"');
  }
  char *made = sqlite3_str_finish(json);
  if (made && (text || type == SQLITE_NULL)) {
    sqlite3_result_text(context, made, -1, sqlite3_free);
  } else {
    sqlite3_free(made);
    sqlite3_result_error_nomem(context);
  }
}

/* sha256(text): in hexadecimal */
static void sha256(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *text = (const char *)sqlite3_value_text(argv[0]);
  char hash[HASH_SIZE] = "";
  if (text) text_hash(text, strlen(text), hash);
  sqlite3_result_text(context, hash, -1, SQLITE_TRANSIENT);
}

/* ---- the page -------------------------------------------------------------------------------- */

static int functions_register(sqlite3 *facts) {
  static const struct {
    const char *name;
    int arguments;
    void (*function)(sqlite3_context *, int, sqlite3_value **);
    void *data;
  } functions[] = {{"decimal", 2, decimal, 0},       {"scale_end", 1, scale_end, 0},
                   {"one_in", 1, one_in, 0},         {"guess", 2, guess, 0},
                   {"scale_low", 2, scale, 0},       {"scale_high", 2, scale, (void *)page_sql},
                   {"json_value", 1, json_value, 0}, {"sha256", 1, sha256, 0}};
  int rc = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++)
    rc = sqlite3_create_function_v2(facts, functions[i].name, functions[i].arguments,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC, functions[i].data,
                                    functions[i].function, 0, 0, 0);
  return rc == SQLITE_OK;
}

const char page_names_sql[] =
    "SELECT name FROM dp_release UNION SELECT series_title(name) FROM dp_release";

/* Makes the table reader(tier): for whom the page is. */
static int reader_make(sqlite3 *facts, const char *tier, struct error *error) {
  if (!facts_run(facts, "CREATE TABLE reader(tier TEXT)", error)) return 0;
  sqlite3_stmt *insert = facts_prepare(facts, "INSERT INTO reader VALUES (?)", error);
  if (insert && sqlite3_bind_text(insert, 1, tier, -1, SQLITE_TRANSIENT) != SQLITE_OK)
    error_set_memory(error);
  facts_row(insert, error);
  sqlite3_finalize(insert);
  return !error_is_set(error);
}

char *page_write(sqlite3 *facts, const char *tier, struct error *error) {
  if (!functions_register(facts)) error_set_memory(error);
  return reader_make(facts, tier, error) && facts_run(facts, page_sql, error)
             ? template_fill(page_html, facts, error)
             : 0;
}
