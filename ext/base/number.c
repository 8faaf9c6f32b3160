/* number.c: see number.h. Tests: tests/base/test_number.c, tests/sums/test_layout.c */
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

#define MOST_DIGITS 17 /* enough to tell any two doubles apart */

/* Writes x as the C library does, "d.ddde+dd", with a number of digits as in number_write(). The C
** library rounds correctly. */
static void scientific(double x, int digits, char text[NUMBER_SIZE]) {
  struct number_locale before = locale_plain();
  int count = digits ? digits : 15;
  do {
    snprintf(text, NUMBER_SIZE, "%.*e", count - 1, x);
  } while (!digits && count++ < MOST_DIGITS && strtod(text, 0) != x);
  locale_restore(before);
}

const char *number_write(double x, int digits, char text[NUMBER_SIZE]) {
  char made[NUMBER_SIZE], significant[NUMBER_SIZE], *at = text;
  if (isnan(x)) return "null";
  if (isinf(x)) return x < 0 ? "-9e999" : "9e999";
  scientific(fabs(x), digits, made);
  int exponent = (int)strtol(strchr(made, 'e') + 1, 0, 10);
  int count = (int)(strchr(made, 'e') - made) - 1; /* without the point */
  significant[0] = made[0];
  if (count > 0) memcpy(significant + 1, made + 2, (size_t)count - 1);
  if (count < 1) count = 1; /* one digit comes without a point */
  while (count > 1 && significant[count - 1] == '0') count--;
  if (signbit(x) && x != 0) *at++ = '-';
  int is_plain = exponent >= -4 && exponent < (digits ? digits : MOST_DIGITS);
  int whole = is_plain ? exponent + 1 : 1; /* the number of digits before the point */
  if (whole <= 0) *at++ = '0';
  for (int i = 0; i < whole; i++) *at++ = i < count ? significant[i] : '0';
  *at++ = '.';
  for (int i = whole; i < 0; i++) *at++ = '0';
  for (int i = whole > 0 ? whole : 0; i < count; i++) *at++ = significant[i];
  if (whole >= count) *at++ = '0';
  if (!is_plain) {
    snprintf(at, (size_t)(text + NUMBER_SIZE - at), "e%+03d", exponent);
  } else {
    *at = 0;
  }
  return text;
}

/* ---- decimals that people type --------------------------------------------------------------- */

/* A number: digits * 10^exponent. */
struct decimal {
  __int128 digits;
  int exponent;
};

/* Returns the shortest decimal of a finite double, without zeros at its end. */
static struct decimal shortest(double x) {
  char text[NUMBER_SIZE];
  scientific(x, 0, text);
  struct decimal decimal = {0, 0};
  const char *at = text + (*text == '-');
  int decimals = 0;
  for (; *at != 'e'; at++) {
    if (*at == '.') continue;
    decimal.digits = decimal.digits * 10 + (*at - '0');
    decimals++;
  }
  decimal.exponent = (int)strtol(at + 1, 0, 10) - (decimals - 1);
  for (; decimal.digits && decimal.digits % 10 == 0; decimal.exponent++) decimal.digits /= 10;
  if (*text == '-') decimal.digits = -decimal.digits;
  return decimal;
}

/* Multiplies by 10^places. Returns 1, or 0 if the digits would need more than 37 places. */
static int lengthen(struct decimal *decimal, int places) {
  if (decimal->digits == 0) places = 0;
  for (; places > 0; places--) {
    double size = fabs((double)decimal->digits);
    if (size > 1e36) return 0;
    decimal->digits *= 10;
    decimal->exponent--;
  }
  return 1;
}

static double double_of(struct decimal decimal) {
  char text[80];
  int negative = decimal.digits < 0;
  unsigned __int128 size = (unsigned __int128)decimal.digits;
  if (negative) size = -size;
  const uint64_t limb = 1000000000000000000u;
  snprintf(text, sizeof text, "%s%" PRIu64 "%018" PRIu64 "%018" PRIu64 "e%d", negative ? "-" : "",
           (uint64_t)(size / limb / limb), (uint64_t)(size / limb % limb), (uint64_t)(size % limb),
           decimal.exponent);
  return strtod(text, 0);
}

double decimal_step(double origin, double k, double step) {
  struct number_locale before = locale_plain();
  struct decimal from = shortest(origin), more = shortest(step);
  double sum = origin + k * step;
  more.digits *= (int64_t)k;
  int exponent = from.exponent < more.exponent ? from.exponent : more.exponent;
  if (from.digits == 0) exponent = more.exponent;
  if (lengthen(&from, from.exponent - exponent) && lengthen(&more, more.exponent - exponent))
    sum = double_of((struct decimal){from.digits + more.digits, exponent});
  locale_restore(before);
  return sum;
}

/* The ends of a range as whole multiples of one power of ten. */
struct decimal_range {
  double low, high;
  __int128 first, last;
  int exponent, is_exact; /* is_exact: first and last are below 1e32 */
};

static struct decimal_range range_of(double low, double high) {
  struct decimal first = shortest(low), last = shortest(high);
  int exponent = first.exponent < last.exponent ? first.exponent : last.exponent;
  if (first.digits == 0) exponent = last.exponent;
  if (last.digits == 0) exponent = first.exponent;
  int fits =
      lengthen(&first, first.exponent - exponent) && lengthen(&last, last.exponent - exponent);
  fits = fits && fabs((double)first.digits) < 1e32 && fabs((double)last.digits) < 1e32;
  return (struct decimal_range){low, high, first.digits, last.digits, exponent, fits};
}

/* The exact edge is a fraction with the denominator `count`. Its decimal is cut after 35 digits; a
** further digit says that something follows, so that the nearest double is found. */
static double edge_of(const struct decimal_range *range, int k, int count) {
  double part = (double)k / count;
  if (!range->is_exact) return range->low * (1 - part) + range->high * part;
  __int128 sum = range->first * (count - k) + range->last * k;
  __int128 size = sum < 0 ? -sum : sum, rest = size % count;
  struct decimal edge = {size / count, range->exponent};
  for (; rest && (double)edge.digits < 1e35; edge.exponent--) {
    edge.digits = edge.digits * 10 + rest * 10 / count;
    rest = rest * 10 % count;
  }
  if (rest) edge = (struct decimal){edge.digits * 10 + 1, edge.exponent - 1};
  if (sum < 0) edge.digits = -edge.digits;
  return double_of(edge);
}

void decimal_edges(double low, double high, int count, double *edges) {
  struct number_locale before = locale_plain();
  struct decimal_range range = range_of(low, high);
  edges[0] = low;
  for (int k = 1; k < count; k++)
    edges[k] = fmin(fmax(edge_of(&range, k, count), edges[k - 1]), high);
  edges[count] = high;
  locale_restore(before);
}

double decimal_edge(double low, double high, int k, int count) {
  struct number_locale before = locale_plain();
  struct decimal_range range = range_of(low, high);
  double edge = k <= 0 ? low : k >= count ? high : edge_of(&range, k, count);
  locale_restore(before);
  return edge;
}
