/*
** vector_text.c: see vector_text.h.
**
** The parser of JSON numbers ignores the locale and allocates no memory. The parser uses at least
** the first 19 significant digits of a number. The error of the result is at most a few units in
** the last place.
** Tests: tests/sums/test_vectors_input.py
*/
#include "base/vector_text.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

SQLITE_EXTENSION_INIT3

/* ---- blobs ----------------------------------------------------------------------------------- */

static int read_blob(const unsigned char *bytes, int size, double *numbers, int count) {
  int finite = 1;
  if (size == 4 * count) {
    for (int i = 0; i < count; i++) numbers[i] = binary32(bytes + 4 * i);
  } else if (size == 8 * count) {
    for (int i = 0; i < count; i++) numbers[i] = binary64(bytes + 8 * i);
  } else {
    return 0;
  }
  for (int i = 0; i < count; i++) finite &= fabs(numbers[i]) <= DBL_MAX; /* also rejects NaN */
  return finite;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t\r\n");
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* A decimal number with the value digits * 10^exponent. */
struct decimal {
  uint64_t digits;
  int exponent;
};

#define MANY_DIGITS 100000 /* limit of exponents, far beyond the range of doubles */

/*
** Reads the digits of the integer part (scale 0) or of the fraction (scale -1). Returns the
** position after the digits, or null if there are no digits.
*/
static const char *read_digits(const char *text, struct decimal *decimal, int scale) {
  if (!is_digit(*text)) return 0;
  for (; is_digit(*text); text++) {
    int fits = decimal->digits < UINT64_MAX / 10 - 9;
    if (fits) decimal->digits = decimal->digits * 10 + (uint64_t)(*text - '0');
    if (decimal->exponent > -MANY_DIGITS && decimal->exponent < MANY_DIGITS)
      decimal->exponent += fits ? scale : scale + 1;
  }
  return text;
}

static const char *read_exponent(const char *text, struct decimal *decimal) {
  int negative = *text == '-', exponent = 0;
  if (*text == '-' || *text == '+') text++;
  if (!is_digit(*text)) return 0;
  for (; is_digit(*text); text++)
    if (exponent < MANY_DIGITS) exponent = exponent * 10 + (*text - '0');
  decimal->exponent += negative ? -exponent : exponent;
  return text;
}

/* Returns digits * 10^exponent. Powers of ten up to 10^22 are exact as doubles. */
static double decimal_value(const struct decimal *decimal) {
  double x = (double)decimal->digits;
  int exponent = decimal->exponent;
  if (x == 0 || exponent < -400) return 0;
  if (exponent > 400) return INFINITY;
  for (; exponent >= 22; exponent -= 22) x *= 1e22;
  for (; exponent <= -22; exponent += 22) x /= 1e22;
  for (; exponent > 0; exponent--) x *= 10;
  double power = 1;
  for (; exponent < 0; exponent++) power *= 10;
  return x / power;
}

/*
** Reads one JSON number. Returns the position after the number, or null if the text does not start
** with a number that fits a double.
*/
static const char *read_number(const char *text, double *number) {
  struct decimal decimal = {0, 0};
  int negative = *text == '-';
  if (negative) text++;
  if (text[0] == '0' && is_digit(text[1])) return 0; /* JSON has no leading zeros */
  text = read_digits(text, &decimal, 0);
  if (text && *text == '.') text = read_digits(text + 1, &decimal, -1);
  if (text && (*text == 'e' || *text == 'E')) text = read_exponent(text + 1, &decimal);
  double size = decimal_value(&decimal);
  *number = negative ? -size : size;
  return text && isfinite(size) ? text : 0;
}

/*
** Reads a text that is an array of at most `room` numbers. Returns the count of numbers, or 0 if
** the text is anything else.
*/
static int read_array(const char *text, double *numbers, int room) {
  text = skip_blanks(text);
  if (*text != '[') return 0;
  for (int i = 0; i < room; i++) {
    text = read_number(skip_blanks(text + 1), &numbers[i]);
    if (!text) return 0;
    text = skip_blanks(text);
    if (*text == ']') return *skip_blanks(text + 1) ? 0 : i + 1;
    if (*text != ',') return 0;
  }
  return 0;
}

int vector_text_list(const char *text, double *numbers, int room) {
  if (*skip_blanks(text) == '[') return read_array(text, numbers, room);
  const char *end = read_number(skip_blanks(text), numbers);
  return end && !*skip_blanks(end);
}

const unsigned char *vector_text_floats(sqlite3_value *value, int count) {
  if (sqlite3_value_type(value) != SQLITE_BLOB) return 0;
  const unsigned char *bytes = sqlite3_value_blob(value);
  return sqlite3_value_bytes(value) == 4 * count ? bytes : 0;
}

int vector_text_read(sqlite3_value *value, double *numbers, int count) {
  int well_formed = 0, type = sqlite3_value_type(value);
  if (type == SQLITE_BLOB) {
    const unsigned char *bytes = sqlite3_value_blob(value);
    well_formed = bytes && read_blob(bytes, sqlite3_value_bytes(value), numbers, count);
  } else if (type == SQLITE_TEXT) {
    const char *text = (const char *)sqlite3_value_text(value);
    well_formed = text && strlen(text) == (size_t)sqlite3_value_bytes(value) &&
                  read_array(text, numbers, count) == count;
  }
  for (int i = 0; i < count && !well_formed; i++) numbers[i] = 0;
  return well_formed;
}
