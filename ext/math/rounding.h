/*
** rounding.h: rounds numbers before they are published or charged, in the direction that favours
** privacy.
**
** The functions of math/ have relative errors of about 1e-14. PUBLISHED_MARGIN is about 4.5e-13.
** This is much larger than these errors, and smaller than 1e-12, the accuracy that the
** documentation promises.
*/
#ifndef DIFFUSE_MATH_ROUNDING_H
#define DIFFUSE_MATH_ROUNDING_H

#include <stdint.h>

#define PUBLISHED_MARGIN 0x1p-41

/*
** Rounds up x >= 0, which is a cost, a deviation or a failure probability. The result is never
** below the true value.
*/
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}

/*
** Returns the zCDP rate of discrete Gaussian noise on a sum of integers (a lattice release),
** rounded up. For integer sensitivity s and variance V the rate is s^2/(2(V - 1/12)). This rate is
** an upper bound on two rates: the exact zCDP rate s^2/(2V) of the discrete Gaussian (Canonne,
** Kamath and Steinke 2020, Theorem 4), and the rate of the continuous Gaussian by which the exact
** Gaussian accountant replaces the discrete one. s < 2^32, V >= 1.
*/
static inline double lattice_rate(uint64_t sensitivity, uint64_t variance) {
  double s = (double)sensitivity;
  return 6 * s * s / (12.0 * (double)variance - 1) * (1 + 0x1p-49);
}

/* Rounds down x >= 0, an amount that may be spent. The result is never above the true value. */
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

#endif
