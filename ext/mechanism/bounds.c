/*
** bounds.c: the estimator of bounds. It reads noisy counts of rows by sign and binary exponent, and
** returns the range of the bins whose counts noise alone would hardly reach.
** Tests: tests/mechanism/test_bounds.py
*/
#include <math.h>

#include "mechanism/estimate.h"

/*
** Let Q be the number that one draw of noise exceeds with probability 1 - (1 - BOUNDS_ALARM)^(1/n),
** for n bins. The draws are independent, so all of them stay below Q with probability 1 -
** BOUNDS_ALARM. Two steps cover the tails of the discrete distribution (noise_law.h).
*/
double estimate_bounds_threshold(const struct reading *reading) {
  double tail = -expm1(log1p(-BOUNDS_ALARM) / reading->shape->bins);
  double noise = reading->view.noise->tail(reading->view.clock, 1, tail);
  return ceil(noise * (1 + 0x1p-40)) + 2;
}

/* An end has no interval of noise: it is one of the powers of two, and not a sum plus noise. */
static struct estimate end(int component, double value) {
  return (struct estimate){0, component, value, NAN, NAN, NAN};
}

int estimate_bounds(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  double threshold = estimate_bounds_threshold(reading);
  int first = 0, last = reading->shape->bins - 1;
  while (first <= last && !((double)values[first] > threshold)) first++;
  while (first <= last && !((double)values[last] > threshold)) last--;
  if (first > last) return 0;
  estimates[0] = end(0, layout_exponent_low(first));
  estimates[1] = end(1, layout_exponent_high(last));
  return 2;
}
