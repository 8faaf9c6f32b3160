/* scalar.h: makes the lattice designs and the bounds for releases of one sum. */
#ifndef TEST_SCALAR_H
#define TEST_SCALAR_H

#include "mechanism/mechanism.h"

static inline struct layout scalar_shape(double clip, int nonnegative, int replace) {
  struct contribution question = {.family = &family_sum, .nonnegative = nonnegative, .clip = clip};
  struct layout shape;
  layout_make(&shape, &question, 1, replace);
  return shape;
}

static inline void scalar_design(struct design *design, double clip, int nonnegative, int replace,
                                 double rate) {
  struct layout shape = scalar_shape(clip, nonnegative, replace);
  design_make(design, &shape, rate, &gaussian_noise);
}

static inline struct bounds scalar_bounds(double clip, int nonnegative) {
  struct layout shape = scalar_shape(clip, nonnegative, 0);
  return design_bounds(&shape);
}

#endif
