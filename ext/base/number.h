/* number.h: writes numbers for programs and for people (figure.c), computes with the decimals that
** people type, and reads numbers from bytes. number.c does not need SQLite.
**
** The text of a number depends on the number alone, not on the version of SQLite or on the host's
** locale, so that a replay gives the same text everywhere. */
#ifndef DIFFUSE_BASE_NUMBER_H
#define DIFFUSE_BASE_NUMBER_H

#include <sqlite3ext.h>
#include <stdint.h>
#include <string.h>

#define NUMBER_SIZE 32

/* Writes a number as JSON and SQL have it, with a decimal point: "-0.8", "4.0", "1.5e+20". With
** `digits` 0, the text has the least number of digits, from 15 to 17, that gives the same double;
** otherwise this number of significant digits, at most 17. Infinity is "9e999", and NaN is "null".
** Returns the text, which is in `text` or a constant. */
const char *number_write(double x, int digits, char text[NUMBER_SIZE]);

/* The exact text of a number, as an argument. It is valid until the end of the block. */
#define NUMBER_TEXT(x) number_write(x, 0, (char[NUMBER_SIZE]){0})

/* ---- decimals that people type --------------------------------------------------------------- */

/* Returns the double nearest to origin + k * step, where origin and step stand for the shortest
** decimals that read back as these doubles, and k is a whole number of magnitude at most 2^53. So
** (0, 7, 0.1) gives the double 0.7, which differs from 7 * 0.1. If the sum needs more than 38
** digits, its last digits are far below the distance of two doubles, and the function computes with
** doubles. */
double decimal_step(double origin, double k, double step);

/* Sets edges[k], k = 0 .. count, to the double nearest to low + k (high - low)/count, where low and
** high stand for their shortest decimals, or computes an edge of too many digits with doubles. The
** edges never decrease. decimal_edge() returns one of them. */
void decimal_edges(double low, double high, int count, double *edges);
double decimal_edge(double low, double high, int k, int count);

/* ---- figures for people ---------------------------------------------------------------------- */

/* A noisy number with its interval, in the form in which people write it, for example "1,804 ± 8".
** The half-width is rounded up to one significant digit, or to two if the first digit is 1 or 2
** (DIN 1333-1 rounds uncertainties in this way). The value is rounded to the same decimal place. */

/* What is known about a figure. If step > 0, its possible values are origin + k * step for all
** integers k. If leaf > 0, digits below the first digit of `leaf` mean nothing. The figure lies in
** [least, most], whose ends may be infinite. */
struct figure_terms {
  double least, most;
  double origin, step;
  double leaf;
};

/* Returns the text of a value and its interval [low, high], which the caller frees with
** sqlite3_free(), or null if memory runs out. If the ends have different distances from the value,
** the text has the form "29 (27 to 34)", and both ends are rounded outward. For numbers from 1e15
** on, and for numbers that would need more than nine decimal places, it has the form "(1.23 ± 0.04)
** × 10^20". All three numbers are finite, and low <= value <= high.
**
** A number that would be shown outside [least, most] is shown as the nearer end, with all digits of
** this end, unless the whole interval lies outside: then the text shows it as it is. If both ends
** are finite, the text has the form with ± only if value ± half-width is inside.
**
** With a grid, the text shows no more decimals than the possible values have. If low = high, the
** number after ± is half a step of the grid, because numbers up to half a step away are rounded to
** the value; without a grid, the text then has the value alone. */
char *figure_with_interval(double value, double low, double high, const struct figure_terms *terms);

/* Returns the text, as above, of a value whose noise is not known: four significant digits. */
char *figure_alone(double value);

/* ---- little-endian numbers at any address ---------------------------------------------------- */

/* One instruction that loads four bytes. */
static inline uint32_t little_endian(const unsigned char *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

static inline double binary32(const unsigned char *bytes) {
  uint32_t bits = little_endian(bytes);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline double binary64(const unsigned char *bytes) {
  uint64_t bits = (uint64_t)little_endian(bytes + 4) << 32 | little_endian(bytes);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Appends the plural of a unit's word: patients, families, classes. */
void append_plural(sqlite3_str *text, const char *unit);

#endif
