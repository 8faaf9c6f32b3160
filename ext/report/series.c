/*
** series.c: finds the releases that ask one question about different periods (page.h).
** Tests: tests/report/test_release_series.py
*/
#include <string.h>

#include "report/page.h"

SQLITE_EXTENSION_INIT3

/* ---- the period in a name -------------------------------------------------------------------- */

struct period {
  int start, end; /* its place in the name */
  char form;      /* 'Y', 'Q', 'M', 'W' or 'D'; 0: the name has no period */
  int at;
};

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the number that `count` digits write, or -1 if it is not in [low, high]. */
static int digits_read(const char *text, int count, int low, int high) {
  int number = 0;
  for (int i = 0; i < count; i++) {
    if (!is_digit(text[i])) return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number >= low && number <= high ? number : -1;
}

/*
** Returns the period that begins at this place of the name. The form is 0 if no period begins
** there.
*/
static struct period period_read(const char *name, int start) {
  struct period found = {start, start + 4, 'Y', 0};
  const char *rest = name + start;
  int year = digits_read(rest, 4, 1900, 2199), part;
  if (year < 0) return (struct period){0};
  rest += 4;
  found.at = year;
  int gap = *rest == '-' || *rest == ' ';
  if (rest[gap] == 'Q' && (part = digits_read(rest + gap + 1, 1, 1, 4)) > 0) {
    found = (struct period){start, start + 4 + gap + 2, 'Q', year * 4 + part};
  } else if (rest[gap] == 'W' && (part = digits_read(rest + gap + 1, 2, 1, 53)) > 0) {
    found = (struct period){start, start + 4 + gap + 3, 'W', year * 53 + part};
  } else if (*rest == '-' && (part = digits_read(rest + 1, 2, 1, 12)) > 0) {
    found = (struct period){start, start + 7, 'M', year * 12 + part};
    int day = rest[3] == '-' ? digits_read(rest + 4, 2, 1, 31) : -1;
    if (day > 0) found = (struct period){start, start + 10, 'D', (year * 12 + part) * 31 + day};
  }
  if (is_word(name[found.end])) found.form = 0;
  return found;
}

/* Finds the first period in a name. The form is 0 if there is none. */
static struct period period_find(const char *name) {
  struct period found = {0};
  for (int i = 0; name && name[i] && !found.form; i++)
    if (i == 0 || !is_word(name[i - 1])) found = period_read(name, i);
  return found;
}

/* ---- SQL functions --------------------------------------------------------------------------- */

static void give(sqlite3_context *context, sqlite3_str *text) {
  char *result = sqlite3_str_finish(text);
  if (result) {
    sqlite3_result_text(context, result, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void series_stem(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (!name) return;
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_append(text, name, period.start);
  if (period.form) sqlite3_str_appendf(text, "\001%c", period.form); /* \001: in no ordinary name */
  sqlite3_str_appendall(text, name + period.end);
  give(context, text);
}

static int is_one_of(char c, const char *list) {
  return c && strchr(list, c);
}

/*
** The title is the name without the period, without the punctuation around the period, and without
** a pair of brackets that held only the period.
*/
static void series_title(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  static const char punctuation[] = " -_:,/";
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (!name) return;
  int before = period.start;
  const char *after = name + period.end;
  for (int had_brackets = period.form != 0; had_brackets;) {
    while (before && is_one_of(name[before - 1], punctuation)) before--;
    while (is_one_of(*after, punctuation)) after++;
    had_brackets = before && is_one_of(name[before - 1], "([") && is_one_of(*after, ")]");
    before -= had_brackets;
    after += had_brackets;
  }
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_append(text, name, before);
  if (before && *after && !is_one_of(name[before - 1], "([") && !is_one_of(*after, ")]"))
    sqlite3_str_appendall(text, " ");
  sqlite3_str_appendall(text, before || *after ? after : "all");
  give(context, text);
}

static void series_period(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (period.form)
    sqlite3_result_text(context, name + period.start, period.end - period.start, SQLITE_TRANSIENT);
}

static void series_at(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (period.form) sqlite3_result_int(context, period.at);
}

static void series_question(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *sql = (const char *)sqlite3_value_text(argv[0]);
  if (!sql) return;
  sqlite3_str *text = sqlite3_str_new(0);
  for (const char *at = sql; *at; at++)
    if (!is_digit(*at)) {
      sqlite3_str_appendchar(text, 1, *at);
    } else if (!is_digit(at[1])) {
      sqlite3_str_appendchar(text, 1, '0');
    }
  give(context, text);
}

int series_register(sqlite3 *db) {
  static const struct {
    const char *name;
    void (*function)(sqlite3_context *, int, sqlite3_value **);
  } functions[] = {{"series_stem", series_stem},
                   {"series_title", series_title},
                   {"series_period", series_period},
                   {"series_at", series_at},
                   {"series_question", series_question}};
  int rc = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++)
    rc = sqlite3_create_function_v2(db, functions[i].name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0,
                                    functions[i].function, 0, 0, 0);
  return rc == SQLITE_OK;
}
