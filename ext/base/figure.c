/* figure.c: writes figures for people (number.h). Tests: tests/ledger/test_display.py */
#include "base/number.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

#define DIGITS 40 /* number of digits to which a double is expanded; enough to recognise a tie */
#define LARGE  15 /* from this exponent on, the text has a power of ten */
/* If a number needs digits after the ninth decimal, its text has a power of ten, too. */
#define SMALL     (-9)
#define PRECISION 15 /* number of significant digits of a double */

/* ---- decimal digits -------------------------------------------------------------------------- */

/* A number in decimal digits: d.ddd... * 10^exponent. */
struct decimal {
  int negative, exponent;
  char digits[DIGITS + 1];
};

static struct decimal decimal_of(double x) {
  struct decimal decimal = {x < 0, 0, {0}};
  char text[DIGITS + 16];
  struct number_locale before = locale_plain();
  snprintf(text, sizeof text, "%.*e", DIGITS - 1, fabs(x));
  locale_restore(before);
  decimal.digits[0] = text[0];
  memcpy(decimal.digits + 1, text + 2, DIGITS - 1);
  const char *exponent = text + 2 + DIGITS - 1 + 1; /* the exponent comes after the letter "e" */
  for (const char *at = exponent + 1; *at; at++)
    decimal.exponent = decimal.exponent * 10 + (*at - '0');
  if (*exponent == '-') decimal.exponent = -decimal.exponent;
  return decimal;
}

/* Returns the exponent of the first digit of a positive number. */
static int exponent_of(double x) {
  return decimal_of(x).exponent;
}

enum direction { NEAREST, DOWN, UP }; /* DOWN and UP: towards minus and plus infinity */

/* Returns x / 10^place, rounded to an integer. The integer must have at most 17 digits. NEAREST
** rounds a tie to the even integer. */
static int64_t rounded(double x, int place, enum direction direction) {
  struct decimal decimal = decimal_of(x);
  int count = x == 0 ? 0 : decimal.exponent - place + 1; /* number of digits down to `place` */
  int64_t whole = 0;
  for (int i = 0; i < count; i++) whole = whole * 10 + (decimal.digits[i] - '0');
  const char *rest = count >= 0 ? decimal.digits + count : "0";
  int exact = x == 0 || (count >= 0 && strspn(rest, "0") == strlen(rest));
  int half = rest[0] == '5' && strspn(rest + 1, "0") == strlen(rest + 1);
  int away = direction == NEAREST ? rest[0] > '5' || (rest[0] == '5' && (!half || whole % 2))
             : exact              ? 0
                                  : (direction == UP) != decimal.negative;
  whole += away;
  return decimal.negative ? -whole : whole;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Appends n * 10^place with commas between thousands. If `place` is negative, appends -place
** decimals. */
static void append_number(sqlite3_str *text, int64_t n, int place) {
  char digits[64];
  int decimals = place < 0 ? -place : 0, count = 0;
  uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
  while (place > 0 && n && count < place) digits[count++] = '0';
  while (rest || count <= decimals) {
    digits[count++] = (char)('0' + rest % 10);
    rest /= 10;
  }
  if (n < 0) sqlite3_str_appendchar(text, 1, '-');
  while (count-- > 0) {
    sqlite3_str_appendchar(text, 1, digits[count]);
    if (count == decimals && count) sqlite3_str_appendchar(text, 1, '.');
    if (count > decimals && (count - decimals) % 3 == 0) sqlite3_str_appendchar(text, 1, ',');
  }
}

/* Returns the decimal place of the last digit with which the text shows a half-width. */
static int place_of(double half) {
  int first = exponent_of(half);
  return rounded(half, first - 1, UP) < 30 ? first - 1 : first;
}

/* Returns the decimal place of the last digit that a number needs, with at most 15 digits. Returns
** INT_MAX for 0. */
static int last_place(double x) {
  if (x == 0) return INT_MAX;
  int place = exponent_of(fabs(x)) - PRECISION + 1;
  while (rounded(x, place, NEAREST) % 10 == 0) place++;
  return place;
}

/* Returns the text of a value whose interval is a single point. Values on a grid are rounded to it,
** so the number before rounding may be half a step away, and the text shows half a step after ±. */
static char *figure_certain(double value, double step) {
  int place = value != 0 ? last_place(value) : 0, step_place = step > 0 ? last_place(step / 2) : 0;
  int first = value != 0 ? exponent_of(fabs(value)) : 0;
  if (place > first && value != 0) first = place; /* a carry: 9.999... has become 10 */
  int scale = first >= LARGE || first < SMALL ? first : 0;
  if (!scale && place > 0) place = 0;
  if (!scale && place < SMALL) place = SMALL;
  if (step_place > 0) step_place = 0;
  sqlite3_str *text = sqlite3_str_new(0);
  append_number(text, value != 0 ? rounded(value, place, NEAREST) : 0, place - scale);
  if (scale) sqlite3_str_appendf(text, " × 10^%d", scale);
  if (step > 0 && !scale && step_place >= SMALL && step < 1e15) {
    sqlite3_str_appendall(text, " ± ");
    append_number(text, rounded(step / 2, step_place, NEAREST), step_place);
  }
  return sqlite3_str_finish(text);
}

/* Returns -1 if n * 10^place is below an end of a range, 1 if it is above, and 0 if it is equal. An
** end with far more digits than n is far from n. */
static int compare(int64_t n, int place, double end) {
  if (isinf(end) || (end != 0 && exponent_of(fabs(end)) - place > PRECISION))
    return end > 0 ? -1 : 1;
  if (n < rounded(end, place, UP)) return -1;
  return n > rounded(end, place, DOWN);
}

/* Appends n * 10^place, or the nearer end of the range if this number is outside. */
static void append_inside(sqlite3_str *text, int64_t n, int place, int scale,
                          const struct figure_terms *terms) {
  double end = compare(n, place, terms->least) < 0 ? terms->least : terms->most;
  if (compare(n, place, terms->least) >= 0 && compare(n, place, terms->most) <= 0) {
    append_number(text, n, place - scale);
  } else {
    int last = end == 0 ? place : last_place(end);
    if (last > place) last = place;
    append_number(text, rounded(end, last, NEAREST), last - scale);
  }
}

char *figure_with_interval(double value, double low, double high,
                           const struct figure_terms *known) {
  struct figure_terms own = *known;
  const struct figure_terms *terms = &own;
  /* The intervals in the ledger were rounded outward, so they are slightly too wide. The factor
  ** 1 - 1e-6 keeps this excess from changing a digit of the text. */
  double below = (value - low) * (1 - 1e-6), above = (high - value) * (1 - 1e-6);
  double half = fmax(below / 2 + above / 2, 0), most = fmax(fabs(value), half);
  int first = most > 0 ? exponent_of(most) : 0;
  if (!(half > 0)) return figure_certain(fmin(fmax(value, terms->least), terms->most), terms->step);
  if (high < terms->least || low > terms->most) { /* "0 ± 8" would be another interval */
    own.least = -INFINITY;
    own.most = INFINITY;
  }
  int place = place_of(half), finest = first - PRECISION + 1;
  int step = terms->step > 0 ? last_place(terms->step) : finest,
      origin = terms->step > 0 ? last_place(terms->origin) : step;
  int possible = step < origin ? step : origin; /* the last place of a possible value */
  if (terms->leaf > 0) possible = exponent_of(terms->leaf);
  if (finest < possible) finest = possible;
  if (place < finest) place = finest;
  int scale = first >= LARGE || place < SMALL ? first : 0;
  int64_t shown = rounded(value, place, NEAREST);
  int64_t minus = rounded(below, place, UP), plus = rounded(above, place, UP);
  int has_ends = isfinite(terms->least) && isfinite(terms->most);
  int fits = !has_ends || (compare(shown - minus, place, terms->least) >= 0 &&
                           compare(shown + plus, place, terms->most) <= 0);
  sqlite3_str *text = sqlite3_str_new(0);
  if (scale) sqlite3_str_appendall(text, "(");
  append_inside(text, shown, place, scale, terms);
  if (minus == plus && fits) {
    sqlite3_str_appendall(text, " ± ");
    append_number(text, plus, place - scale);
  } else {
    /* An end that equals the value is shown as the value: outward, 12.7 might become 12.69. */
    int64_t from = minus ? rounded(value - below, place, DOWN) : shown;
    int64_t to = plus ? rounded(value + above, place, UP) : shown;
    sqlite3_str_appendall(text, " (");
    append_inside(text, from, place, scale, terms);
    sqlite3_str_appendall(text, " to ");
    append_inside(text, to, place, scale, terms);
    sqlite3_str_appendall(text, ")");
  }
  if (scale) sqlite3_str_appendf(text, ") × 10^%d", scale);
  return sqlite3_str_finish(text);
}

char *figure_alone(double value) {
  int first = value != 0 ? exponent_of(fabs(value)) : 0;
  int place = value != 0 ? first - 3 : 0;
  int scale = first >= LARGE || place < SMALL ? first : 0;
  sqlite3_str *text = sqlite3_str_new(0);
  append_number(text, rounded(value, place, NEAREST), place - scale);
  if (scale) sqlite3_str_appendf(text, " × 10^%d", scale);
  return sqlite3_str_finish(text);
}

void append_plural(sqlite3_str *text, const char *unit) {
  size_t size = strlen(unit);
  char last = unit[size - 1], before = size > 1 ? unit[size - 2] : ' ';
  if (last == 'y' && !strchr("aeiou", before)) {
    sqlite3_str_append(text, unit, (int)size - 1);
    sqlite3_str_appendall(text, "ies");
  } else {
    sqlite3_str_appendf(text, "%s%s", unit, last == 's' || last == 'x' || last == 'h' ? "es" : "s");
  }
}
