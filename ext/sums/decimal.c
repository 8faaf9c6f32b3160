/* decimal.c: see decimal.h. */
#include "sums/decimal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "noise/lattice.h"
#include "os/locale.h"

#define MOST_DIGITS 17 /* 17 digits identify every double */

/* A number: digits * 10^exponent. */
struct decimal {
  int128 digits;
  int exponent;
};

/* Returns the shortest decimal of a finite double, without zeros at its end. */
static struct decimal shortest(double x) {
  char text[MOST_DIGITS + 16];
  int count = 15; /* no double has two decimals of 15 digits */
  do {
    snprintf(text, sizeof text, "%.*e", count - 1, x);
  } while (strtod(text, 0) != x && ++count <= MOST_DIGITS);
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
  uint128 size = negative ? -(uint128)decimal.digits : (uint128)decimal.digits;
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
