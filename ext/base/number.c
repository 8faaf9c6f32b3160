/* number.c: see number.h. Tests: tests/base/test_number.c */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/locale.h"

#define MOST_DIGITS 17 /* enough to tell any two doubles apart */

/*
** Writes x as the C library does, "d.ddde+dd", with a number of digits as in number_write(). The C
** library rounds correctly.
*/
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
