/* test_number.c: the C library reads each text back and must get the same double. One digit less
** must give another double, unless the text has at most 15 digits. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void) { /* xorshift64: the tests need only a fixed sequence */
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static int digits_of(const char *text) {
  char digits[NUMBER_SIZE];
  int count = 0;
  for (; *text && *text != 'e'; text++)
    if (*text >= '0' && *text <= '9' && (count || *text != '0')) digits[count++] = *text;
  while (count && digits[count - 1] == '0') count--;
  return count;
}

static void check_exact(double x) {
  char shorter[40];
  const char *text = NUMBER_TEXT(x);
  int digits = digits_of(text);
  CHECK(strtod(text, 0) == x, "%s is not %.17g", text, x);
  CHECK(strlen(text) < NUMBER_SIZE && strchr(text, '.'), "%s has no point", text);
  CHECK(digits <= 17, "%s has too many digits", text);
  snprintf(shorter, sizeof shorter, "%.*e", digits - 2, x);
  CHECK(digits <= 15 || strtod(shorter, 0) != x, "%s is enough", shorter);
}

static void random_numbers(void) {
  for (int i = 0; i < 60000; i++) {
    uint64_t bits = random_bits();
    double x;
    memcpy(&x, &bits, sizeof x);
    if (isfinite(x)) check_exact(x);
    check_exact((double)(int64_t)random_bits() * 0x1p-40);
    check_exact((double)(random_bits() % 100000) / 1000 + 0.001);
  }
}

static void known_texts(void) {
  static const struct {
    double x;
    int digits;
    const char *text;
  } known[] = {{0.0, 0, "0.0"},
               {-0.0, 0, "0.0"},
               {4, 0, "4.0"},
               {-0.8, 0, "-0.8"},
               {0.1 + 0.2, 0, "0.30000000000000004"},
               {0.1 + 0.2, 15, "0.3"},
               {0.0001, 0, "0.0001"},
               {0.00001, 0, "1.0e-05"},
               {1e16, 0, "10000000000000000.0"},
               {1e17, 0, "1.0e+17"},
               {1.5e20, 0, "1.5e+20"},
               {1e14, 15, "100000000000000.0"},
               {1e15, 15, "1.0e+15"},
               {5e-324, 0, "4.94065645841247e-324"},
               {-1.7976931348623157e308, 0, "-1.7976931348623157e+308"},
               {(double)INFINITY, 0, "9e999"},
               {-(double)INFINITY, 0, "-9e999"},
               {(double)NAN, 0, "null"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const char *text = number_write(known[i].x, known[i].digits, (char[NUMBER_SIZE]){0});
    CHECK(strcmp(text, known[i].text) == 0, "%s instead of %s", text, known[i].text);
  }
}

int main(void) {
  RUN(known_texts);
  RUN(random_numbers);
  FINISH();
}
