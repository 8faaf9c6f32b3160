/*
** display.c: defines SQL functions on private connections. display() and figure() are columns of
** dp_value: a published value in the form in which people read it, and words about the value.
** exact() writes a number with all its digits.
** Tests: tests/ledger/test_display.py
*/
#include "ledger/display.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

SQLITE_EXTENSION_INIT3

enum {
  KIND,
  LO,
  HI,
  CLIP,
  SIZE,
  GRID,
  CENTRE,
  THETA,
  RADIUS,
  MIXED,
  KEY,
  STDDEV,
  VALUE,
  LOW,
  HIGH,
  ARGUMENTS
};
#define FIGURE_ARGUMENTS 15

static int is_finite(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_FLOAT && isfinite(sqlite3_value_double(value));
}

static double number_or_nan(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_NULL ? (double)NAN : sqlite3_value_double(value);
}

/* Returns the text of a number with its interval. The caller calls sqlite3_free(). */
static char *display_interval(sqlite3_value **argv, const struct kind_display *display) {
  double lo = number_or_nan(argv[LO]), size = sqlite3_value_double(argv[SIZE]);
  struct figure_terms terms = {.least = display->least, .most = display->most};
  if (is_finite(argv[GRID])) {
    terms.origin = lo;
    terms.step = sqlite3_value_double(argv[GRID]);
  } else if (display->has_leaves && size > 0) {
    terms.leaf = (sqlite3_value_double(argv[HI]) / 2 - lo / 2) / size * 2;
  }
  return figure_with_interval(sqlite3_value_double(argv[VALUE]), sqlite3_value_double(argv[LOW]),
                              sqlite3_value_double(argv[HIGH]), &terms);
}

/*
** Returns the text of a number that was drawn from the leaves of a range, without noise around it.
** The number is the middle of a leaf, or a value of the grid. The caller calls sqlite3_free().
*/
static char *display_drawn(sqlite3_value **argv, const struct kind_display *display) {
  double value = sqlite3_value_double(argv[VALUE]), size = sqlite3_value_double(argv[SIZE]);
  struct figure_terms terms = {.least = display->least, .most = display->most};
  if (!is_finite(argv[GRID]) && size > 0) {
    double leaf = (display->most / 2 - display->least / 2) / size * 2;
    double unit = pow(10, floor(log10(leaf)));
    if (unit > 0) value = rint(value / unit) * unit;
  }
  return figure_with_interval(value, value, value, &terms);
}

static void display(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const struct ledger *ledger = sqlite3_user_data(context);
  const char *kind = (const char *)sqlite3_value_text(argv[KIND]);
  double value = sqlite3_value_double(argv[VALUE]);
  struct kind_display known = {0};
  if (kind)
    known = ledger->kinds->displayed(kind, number_or_nan(argv[LO]), number_or_nan(argv[HI]),
                                     number_or_nan(argv[CLIP]));
  if (sqlite3_value_type(argv[STDDEV]) == SQLITE_NULL) {
    /* a quantile that was drawn, an end of bounds, or a symbol */
    char *end = known.has_leaves && is_finite(argv[VALUE]) ? display_drawn(argv, &known)
                : kind && strcmp(kind, "bounds") == 0      ? sqlite3_mprintf("%.15g", value)
                                                           : 0;
    if (end) {
      sqlite3_result_text(context, end, -1, sqlite3_free);
    } else {
      sqlite3_result_value(context, argv[KEY]);
    }
    return;
  }
  if (!kind || !is_finite(argv[VALUE])) return; /* the result is NULL */
  char *number = is_finite(argv[LOW]) && is_finite(argv[HIGH]) ? display_interval(argv, &known)
                                                               : figure_alone(value);
  struct ledger_release release = {.kind = (char *)kind,
                                   .centre = number_or_nan(argv[CENTRE]),
                                   .theta = number_or_nan(argv[THETA]),
                                   .radius = number_or_nan(argv[RADIUS])};
  sqlite3_str *words = sqlite3_str_new(0);
  if (number) {
    sqlite3_str_appendall(words, number);
    ledger->kinds->move(words, &release, sqlite3_value_int(argv[MIXED]));
  }
  sqlite3_free(number);
  char *text = sqlite3_str_finish(words);
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void exact(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  if (sqlite3_value_type(*argv) == SQLITE_FLOAT) {
    sqlite3_result_text(context, NUMBER_TEXT(sqlite3_value_double(*argv)), -1, SQLITE_TRANSIENT);
  } else if (sqlite3_value_type(*argv) == SQLITE_NULL) {
    sqlite3_result_text(context, "null", -1, SQLITE_STATIC);
  } else {
    sqlite3_result_value(context, *argv);
  }
}

static void figure(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const struct ledger *ledger = sqlite3_user_data(context);
  struct ledger_release release = {.kind = (char *)sqlite3_value_text(argv[0]),
                                   .clip = number_or_nan(argv[1]),
                                   .lo = number_or_nan(argv[2]),
                                   .hi = number_or_nan(argv[3]),
                                   .grid = number_or_nan(argv[4]),
                                   .centre = number_or_nan(argv[5]),
                                   .theta = number_or_nan(argv[6]),
                                   .radius = number_or_nan(argv[7]),
                                   .max_groups = sqlite3_value_int(argv[8]),
                                   .quantiles = (char *)sqlite3_value_text(argv[9]),
                                   .ways = (char *)sqlite3_value_text(argv[10]),
                                   .periods = (char *)sqlite3_value_text(argv[11]),
                                   .mechanism = (char *)sqlite3_value_text(argv[12])};
  const char *unit = (const char *)sqlite3_value_text(argv[13]);
  char *text =
      release.kind ? ledger->kinds->figure(&release, unit, sqlite3_value_int(argv[14])) : 0;
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

int display_register(struct ledger *ledger, sqlite3 *db) {
  return (sqlite3_create_function_v2(db, "display", ARGUMENTS, SQLITE_UTF8, ledger, display, 0, 0,
                                     0) == SQLITE_OK &&
          sqlite3_create_function_v2(db, "figure", FIGURE_ARGUMENTS, SQLITE_UTF8, ledger, figure, 0,
                                     0, 0) == SQLITE_OK &&
          sqlite3_create_function_v2(db, "exact", 1, SQLITE_UTF8, 0, exact, 0, 0, 0) ==
              SQLITE_OK) ||
         ledger_fail(ledger, "out of memory");
}
