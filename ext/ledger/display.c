/*
** display.c: defines SQL functions on private connections. display() and figure() are columns of
** dp_value: a published value in the form in which people read it, and words about the value;
** component() is a part of the column label.
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
#define FIGURE_ARGUMENTS 25

static int is_finite(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_FLOAT && isfinite(sqlite3_value_double(value));
}

static double number_or_nan(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_NULL ? (double)NAN : sqlite3_value_double(value);
}

/* A value, its release, and what numbers of the kind of the release can be. */
struct shown {
  const struct ledger_release *release;
  const struct ledger_value *value;
  struct kind_display kind;
};

/* Returns the text of a number with its interval. The caller calls sqlite3_free(). */
static char *display_interval(const struct shown *shown) {
  const struct ledger_release *release = shown->release;
  const struct ledger_value *value = shown->value;
  struct figure_terms terms = {.least = shown->kind.least, .most = shown->kind.most};
  if (isfinite(release->grid)) {
    terms.origin = release->lo;
    terms.step = release->grid;
  } else if (shown->kind.has_leaves && release->size > 0) {
    terms.leaf = (release->hi / 2 - release->lo / 2) / release->size * 2;
  }
  return figure_with_interval(value->value, value->low, value->high, &terms);
}

/*
** Returns the text of a number that was drawn from the leaves of a range, without noise around it.
** The number is the middle of a leaf, or a value of the grid. The caller calls sqlite3_free().
*/
static char *display_drawn(const struct shown *shown) {
  double value = shown->value->value;
  struct figure_terms terms = {.least = shown->kind.least, .most = shown->kind.most};
  if (!isfinite(shown->release->grid) && shown->release->size > 0) {
    double leaf = (terms.most / 2 - terms.least / 2) / shown->release->size * 2;
    double unit = pow(10, floor(log10(leaf)));
    if (unit > 0) value = rint(value / unit) * unit;
  }
  return figure_with_interval(value, value, value, &terms);
}

static struct kind_display kind_of(const struct ledger *ledger,
                                   const struct ledger_release *release) {
  return ledger->kinds->displayed(release->kind, release->lo, release->hi, release->clip);
}

/* Returns the text of a finite number with noise. The caller calls sqlite3_free(). */
static char *display_noisy(const struct ledger *ledger, const struct shown *shown, int is_mixed) {
  int has_interval = isfinite(shown->value->low) && isfinite(shown->value->high);
  char *number = has_interval ? display_interval(shown) : figure_alone(shown->value->value);
  if (!number) return 0;
  sqlite3_str *words = sqlite3_str_new(0);
  sqlite3_str_appendall(words, number);
  ledger->kinds->move(words, shown->release, is_mixed);
  sqlite3_free(number);
  return sqlite3_str_finish(words);
}

int ledger_display(const struct ledger *ledger, const struct ledger_release *release,
                   const struct ledger_value *value, char **display) {
  struct shown shown = {release, value, kind_of(ledger, release)};
  *display = isfinite(value->value) ? display_noisy(ledger, &shown, 0) : 0;
  return *display || !isfinite(value->value) || error_set_memory(ledger->error);
}

static double finite_or_nan(sqlite3_value *value) {
  return is_finite(value) ? sqlite3_value_double(value) : (double)NAN;
}

/* Sets *text to the text of an argument, or to null for NULL. Returns 0 when out of memory. */
static int text_of(sqlite3_value *value, const char **text) {
  *text = (const char *)sqlite3_value_text(value);
  return *text || sqlite3_value_type(value) == SQLITE_NULL;
}

/* Sets the result to a text, which SQLite then frees. A null pointer means: out of memory. */
static void result_made(sqlite3_context *context, char *text) {
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

/* The last bin of bounds (sums/layout.h) also has the values beyond its end. */
#define LAST_BOUND 0x1p128

static void display(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const struct ledger *ledger = sqlite3_user_data(context);
  const char *kind;
  if (!text_of(argv[KIND], &kind)) {
    sqlite3_result_error_nomem(context);
    return;
  }
  struct ledger_release release = {.kind = (char *)kind,
                                   .lo = number_or_nan(argv[LO]),
                                   .hi = number_or_nan(argv[HI]),
                                   .clip = number_or_nan(argv[CLIP]),
                                   .size = sqlite3_value_int(argv[SIZE]),
                                   .grid = finite_or_nan(argv[GRID]),
                                   .centre = number_or_nan(argv[CENTRE]),
                                   .theta = number_or_nan(argv[THETA]),
                                   .radius = number_or_nan(argv[RADIUS])};
  struct ledger_value value = {.value = finite_or_nan(argv[VALUE]),
                               .low = finite_or_nan(argv[LOW]),
                               .high = finite_or_nan(argv[HIGH])};
  struct shown shown = {.release = &release, .value = &value};
  if (release.kind) shown.kind = kind_of(ledger, &release);
  if (sqlite3_value_type(argv[STDDEV]) == SQLITE_NULL) {
    /* a quantile that was drawn, an end of bounds, or a symbol */
    if (shown.kind.has_leaves && isfinite(value.value)) {
      result_made(context, display_drawn(&shown));
    } else if (release.kind && strcmp(release.kind, "bounds") == 0) {
      double end = sqlite3_value_double(argv[VALUE]);
      const char *beyond = end >= LAST_BOUND ? " or more" : end <= -LAST_BOUND ? " or less" : "";
      result_made(context, sqlite3_mprintf("%.15g%s", end, beyond));
    } else {
      sqlite3_result_value(context, argv[KEY]);
    }
  } else if (release.kind && isfinite(value.value)) { /* otherwise the result is NULL */
    result_made(context, display_noisy(ledger, &shown, sqlite3_value_int(argv[MIXED])));
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
  const struct ledger *ledger = sqlite3_user_data(context);
  const char *texts[FIGURE_ARGUMENTS] = {0};
  int read = 1;
  for (int i = 0; i < argc; i++)
    if (i == 0 || (i >= 9 && i <= 13) || i == 23) read = read && text_of(argv[i], &texts[i]);
  struct ledger_release release = {.kind = (char *)texts[0],
                                   .clip = number_or_nan(argv[1]),
                                   .lo = number_or_nan(argv[2]),
                                   .hi = number_or_nan(argv[3]),
                                   .grid = number_or_nan(argv[4]),
                                   .centre = number_or_nan(argv[5]),
                                   .theta = number_or_nan(argv[6]),
                                   .radius = number_or_nan(argv[7]),
                                   .max_groups = sqlite3_value_int(argv[8]),
                                   .quantiles = (char *)texts[9],
                                   .ways = (char *)texts[10],
                                   .periods = (char *)texts[11],
                                   .mechanism = (char *)texts[12]};
  struct ledger_figure terms = {texts[13],
                                sqlite3_value_int(argv[14]),
                                number_or_nan(argv[15]),
                                {number_or_nan(argv[16]), number_or_nan(argv[17]),
                                 number_or_nan(argv[18]), number_or_nan(argv[19]),
                                 number_or_nan(argv[20]), number_or_nan(argv[21]),
                                 number_or_nan(argv[22])},
                                texts[23],
                                number_or_nan(argv[24])};
  result_made(context, read && release.kind ? ledger->kinds->figure(&release, &terms) : 0);
}

static void component(sqlite3_context *context, int argc, sqlite3_value **argv) {
  const struct ledger *ledger = sqlite3_user_data(context);
  const char *kind = 0, *quantiles = 0;
  (void)argc;
  int read = text_of(argv[0], &kind) && text_of(argv[4], &quantiles);
  struct ledger_release release = {.kind = (char *)kind,
                                   .lo = number_or_nan(argv[1]),
                                   .hi = number_or_nan(argv[2]),
                                   .size = sqlite3_value_int(argv[3]),
                                   .quantiles = (char *)quantiles};
  result_made(context,
              read && kind ? ledger->kinds->component(&release, sqlite3_value_int(argv[5])) : 0);
}

int display_register(struct ledger *ledger, sqlite3 *db) {
  return (sqlite3_create_function_v2(db, "display", ARGUMENTS, SQLITE_UTF8, ledger, display, 0, 0,
                                     0) == SQLITE_OK &&
          sqlite3_create_function_v2(db, "figure", FIGURE_ARGUMENTS, SQLITE_UTF8, ledger, figure, 0,
                                     0, 0) == SQLITE_OK &&
          sqlite3_create_function_v2(db, "component", 6, SQLITE_UTF8, ledger, component, 0, 0, 0) ==
              SQLITE_OK &&
          sqlite3_create_function_v2(db, "exact", 1, SQLITE_UTF8, 0, exact, 0, 0, 0) ==
              SQLITE_OK) ||
         ledger_fail(ledger, "out of memory");
}
