/*
** rounding.h: rounds numbers that are published or charged in the direction of privacy.
**
** math/ computes to a relative error of about 1e-14; PUBLISHED_MARGIN is well above that and well
** below 1e-12, the accuracy that the documentation promises.
*/
#ifndef DIFFUSE_MATH_ROUNDING_H
#define DIFFUSE_MATH_ROUNDING_H

#include <stdint.h>

#define PUBLISHED_MARGIN 0x1p-41

/* For costs, noise and failure probabilities: never below the true value. x >= 0. */
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}

/*
** Rate of a lattice release of integer sensitivity s at variance V, never below the true value:
** s^2/(2(V - 1/12)), which bounds both the discrete Gaussian's exact zCDP rate s^2/(2V) (Canonne,
** Kamath and Steinke 2020, Theorem 4) and the continuous Gaussian that the exact accountant
** compares it with. s < 2^32, V >= 1.
*/
static inline double lattice_rate(uint64_t sensitivity, uint64_t variance) {
  double s = (double)sensitivity;
  return 6 * s * s / (12.0 * (double)variance - 1) * (1 + 0x1p-49);
}

/* For amounts that may be spent: never above the true value. x >= 0. */
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

#endif
