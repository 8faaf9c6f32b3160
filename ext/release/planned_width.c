/*
** planned_width.c: see planned_width.h.
** Tests: tests/functions/test_plan_values.py
*/
#include "release/planned_width.h"

#include <math.h>

#include "mechanism/mechanism.h"
#include "release/leaf_release.h"
#include "release/numbers.h"

double planned_half_width(struct publication *publication, double rows, double rate) {
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  struct design design;
  if (is_leaf_release(publication)) return leaf_half_width(publication, rows, rate);
  design_make(&design, &publication->definition.layout, rate, noise);
  release->granularity = design.granularity;
  release->shift = design.shift;
  publication->position.clock = noise->clock(design.sensitivity, rate);
  double half_width = numbers_half_width(publication, rows);
  return isnan(half_width) ? statistic_half_width(publication, numbers_stddev(publication))
                           : half_width;
}

double statistic_half_width(const struct publication *publication, double stddev) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  return publication->definition.aggregate->family->is_linear
             ? noise->half_width(stddev, NUMBERS_CONFIDENCE)
             : mixed_half_width(noise, stddev, NUMBERS_CONFIDENCE);
}
