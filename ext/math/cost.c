/*
** cost.c: totals. This code needs IEEE doubles that are rounded to nearest. It must be compiled
** with -ffp-contract=off, so that the compiler does not replace a product and a sum by an FMA.
** Tests: tests/math/test_total.c
*/
#include "math/cost.h"

#include <math.h>

/*
** Knuth's two-sum: returns a + b rounded to a double, and sets *error to the exact rounding error.
*/
static double two_sum(double a, double b, double *error) {
  double sum = a + b;
  double b_part = sum - a;
  *error = (a - (sum - b_part)) + (b - b_part);
  return sum;
}

struct total total_add(struct total total, double term) {
  double error, rest;
  double high = two_sum(total.high, term, &error);
  double low = two_sum(total.low, error, &rest);
  if (rest > 0) low = nextafter(low, INFINITY);
  struct total sum;
  sum.high = two_sum(high, low, &sum.low);
  return sum;
}

double total_up(struct total total) {
  double error;
  double sum = two_sum(total.high, total.low, &error);
  return error > 0 ? nextafter(sum, INFINITY) : sum;
}

int total_within(struct total total, double limit) {
  double high = total.high, low = total.low;
  return high < limit ? low <= limit - high : (high == limit && low <= 0);
}

double total_left(struct total total, double limit) {
  double left = (limit - total.high) - total.low;
  return left > 0 ? nextafter(left, 0) : 0;
}

double total_spare(struct total paid, double cost) {
  double error_of_high, error_of_low, error_of_rest, error;
  if (!isfinite(paid.high) || !isfinite(cost)) return 0;
  double spare = two_sum(paid.high, -cost, &error_of_high);
  spare = two_sum(spare, paid.low, &error_of_low);
  double rest = two_sum(error_of_high, error_of_low, &error_of_rest);
  if (error_of_rest < 0) rest = nextafter(rest, -INFINITY);
  spare = two_sum(spare, rest, &error); /* paid - cost is at least spare + error */
  if (error < 0) spare = nextafter(spare, 0);
  return spare > 0 ? spare : 0;
}

double total_missing(struct total paid, double cost) {
  if (isinf(cost)) return isinf(paid.high) ? 0 : cost; /* the differences below would be NaN */
  double error_of_high, error_of_low, error_of_rest, error;
  double missing = two_sum(cost, -paid.high, &error_of_high);
  missing = two_sum(missing, -paid.low, &error_of_low);
  double rest = two_sum(error_of_high, error_of_low, &error_of_rest);
  if (error_of_rest > 0) rest = nextafter(rest, INFINITY);
  missing = two_sum(missing, rest, &error); /* cost - paid is at most missing + error */
  if (error > 0) missing = nextafter(missing, INFINITY);
  return missing > 0 ? missing : 0;
}
