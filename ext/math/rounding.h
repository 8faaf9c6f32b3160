/*
** rounding.h: numbers that are published or charged are rounded in the direction of privacy.
**
** math/ computes to a relative error of about 1e-14; PUBLISHED_MARGIN is well above that and well
** below the 1e-12 at which anybody could call a figure wrong.
*/
#ifndef DIFFUSE_MATH_ROUNDING_H
#define DIFFUSE_MATH_ROUNDING_H

#define PUBLISHED_MARGIN 0x1p-41

/* For costs, noise and failure probabilities: never below the true value. x >= 0. */
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}

/* For what may be spent: never above the true value. x >= 0. */
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

#endif
