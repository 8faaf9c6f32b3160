/* reading.c: see reading.h. Tests: tests/release/test_series_figures.py */
#include "mechanism/reading.h"

#include <math.h>

#include "math/cost.h"
#include "math/diffusion.h"
#include "mechanism/lattice_design.h"

/* ---- views ----------------------------------------------------------------------------------- */

double estimate_variance(const struct view *view) {
  return ldexp((double)view->clock, 2 * view->granularity);
}

double estimate_shrink(const struct view *view, double tau) {
  if (!view->is_ou) return 1;
  if (view->theta == view->theta) return ou_shrink_process(view->theta, view->rho, tau);
  return ou_shrink_radius(view->radius, view->dimension, tau);
}

double view_noise(const struct view *view) {
  double part = view->part > 0 ? view->part : 1;
  return part * ldexp(sqrt((double)view->clock), view->granularity);
}

double estimate_stddev(const struct view *view) {
  return published_up(estimate_shrink(view, estimate_variance(view)) * view_noise(view));
}

/* ---- shared by all reading ---------------------------------------------------------------- */

double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component) {
  if (reading->numbers)
    return reading->numbers[(size_t)cell * (size_t)reading->shape->width + (size_t)component];
  int64_t steps = values[(int64_t)cell * reading->shape->width + component];
  return ldexp((double)steps, reading->view.granularity);
}

struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed) {
  double noise = published_up(stddev), confidence = reading->confidence;
  double half_width = is_mixed ? mixed_half_width(reading->view.noise, noise, confidence)
                               : reading->view.noise->half_width(noise, confidence);
  double low = nextafter(value - half_width, -INFINITY);
  double high = nextafter(value + half_width, INFINITY);
  return (struct estimate){cell, component, value, noise, low, high};
}

double reading_mixed_width(const struct reading *reading) {
  return mixed_half_width(reading->view.noise, 1, reading->confidence);
}

double reading_rows(const struct reading *reading, const int64_t *values, int cell) {
  double count = 0;
  for (int j = 0; j < reading->shape->counted; j++)
    count += reading_coordinate(reading, values, cell, j);
  return count / reading->shape->count_factor;
}

double reading_half_range(const struct reading *reading) {
  return reading->question->high / 2 - reading->question->low / 2;
}
