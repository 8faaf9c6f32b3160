/* scale.h: the scale of a chart. */
#ifndef DIFFUSE_REPORT_SCALE_H
#define DIFFUSE_REPORT_SCALE_H

#include <math.h>

struct scale {
  double low, high; /* unless low < high, there is no chart */
};

static inline int scale_is_good(struct scale scale) {
  return isfinite(scale.low) && isfinite(scale.high) && scale.low < scale.high;
}

/* Returns a scale that contains this scale and ends at round numbers. */
static inline struct scale scale_round(struct scale scale) {
  double step = pow(10, floor(log10(scale.high - scale.low)));
  if ((scale.high - scale.low) / step < 4) step /= 2;
  return (struct scale){floor(scale.low / step) * step, ceil(scale.high / step) * step};
}

/* Returns the place of a number on the scale, from 0 at its low end to 1 at its high end. */
static inline double scale_place(struct scale scale, double x) {
  return fmin(1, fmax(0, (x - scale.low) / (scale.high - scale.low)));
}

#endif
