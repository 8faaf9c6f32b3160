/* numeric.h: tools of this folder: products and quotients of non-negative numbers whose
** intermediate results do not overflow or underflow, and roots of a function of one variable.
**
** A scaled number is mantissa * 2^exponent. The mantissa is in [1/2, 1), or 0, or infinity. Every
** operation rounds once. The relative error of a formula therefore depends on the number of its
** factors and not on their size. Only scaled_value() can overflow to infinity or underflow to 0. */
#ifndef DIFFUSE_MATH_NUMERIC_H
#define DIFFUSE_MATH_NUMERIC_H

#include <math.h>
#include <stdint.h>

struct scaled {
  double mantissa;
  int64_t exponent;
};

static inline struct scaled scaled(double x) {
  int exponent = 0;
  double mantissa = isfinite(x) ? frexp(x, &exponent) : x;
  return (struct scaled){mantissa, exponent};
}

static inline struct scaled scaled_times(struct scaled a, struct scaled b) {
  struct scaled product = scaled(a.mantissa * b.mantissa);
  product.exponent += a.exponent + b.exponent;
  return product;
}

static inline struct scaled scaled_over(struct scaled a, struct scaled b) {
  struct scaled quotient = scaled(a.mantissa / b.mantissa);
  quotient.exponent += a.exponent - b.exponent;
  return quotient;
}

/* Returns a + b for a, b >= 0. */
static inline struct scaled scaled_plus(struct scaled a, struct scaled b) {
  if (a.mantissa == 0.0) return b;
  if (b.mantissa == 0.0) return a;
  if (a.exponent < b.exponent) return scaled_plus(b, a);
  int64_t down = b.exponent - a.exponent;
  struct scaled sum = scaled(a.mantissa + (down < -100 ? 0.0 : ldexp(b.mantissa, (int)down)));
  sum.exponent += a.exponent;
  return sum;
}

static inline struct scaled scaled_square(struct scaled a) {
  return scaled_times(a, a);
}

static inline struct scaled scaled_root(struct scaled a) {
  int odd = a.exponent % 2 != 0;
  struct scaled root = scaled(sqrt(odd ? 2.0 * a.mantissa : a.mantissa));
  root.exponent += (a.exponent - odd) / 2;
  return root;
}

/* Returns e^x for any x. Returns infinity for x > 100000 and 0 for x < -100000. Beyond these
** limits, even the product of e^x and a few doubles is outside the range of doubles. */
static inline struct scaled scaled_exp(double x) {
  const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  if (x > 1e5) return scaled((double)INFINITY);
  if (x < -1e5) return scaled(0.0);
  double k = nearbyint(x / (ln2_high + ln2_low));
  struct scaled power = scaled(exp((x - k * ln2_high) - k * ln2_low));
  power.exponent += (int64_t)k;
  return power;
}

static inline double scaled_value(struct scaled a) {
  if (a.exponent > 1100) return a.mantissa > 0.0 ? (double)INFINITY : a.mantissa;
  if (a.exponent < -1200) return isfinite(a.mantissa) ? 0.0 : a.mantissa;
  return ldexp(a.mantissa, (int)a.exponent);
}

/* ---- roots ----------------------------------------------------------------------------------- */

/* Returns a root of `function` in [low, high]. At low and high the values of `function` must be
** finite and must have opposite signs or be zero. Otherwise root_between() returns NaN.
** root_between() allocates no memory. */
double root_between(double (*function)(double, void *), void *parameters, double low, double high);

#endif
