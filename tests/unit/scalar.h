/* scalar.h: the designs and bounds of releases of one sum. */
#ifndef TEST_SCALAR_H
#define TEST_SCALAR_H

#include "release/release.h"

static inline struct shape scalar_shape(double clip, int nonnegative, int replace) {
  struct question question = {.family = FAMILY_SUM, .nonnegative = nonnegative, .clip = clip};
  struct shape shape;
  shape_make(&shape, &question, 1, replace);
  return shape;
}

static inline void scalar_design(struct design *design, double clip, int nonnegative, int replace,
                                 double rate) {
  struct shape shape = scalar_shape(clip, nonnegative, replace);
  design_make(design, &shape, rate, LAW_GAUSSIAN);
}

static inline struct bounds scalar_bounds(double clip, int nonnegative) {
  struct shape shape = scalar_shape(clip, nonnegative, 0);
  return design_bounds(&shape);
}

#endif
