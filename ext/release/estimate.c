/* estimate.c: see estimate.h. */
#include "release/estimate.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "math/diffusion.h"
#include "math/rounding.h"

double estimate_shrink(uint64_t clock, int granularity, int dimension, double radius, double theta,
                       double rho) {
  double tau = ldexp((double)clock, 2 * granularity);
  if (theta == theta) return ou_shrink_process(theta, rho, tau);
  return radius == radius ? ou_shrink_radius(radius, dimension, tau) : 1;
}

double estimate_value(const struct view *view, int64_t lattice) {
  double x = ldexp((double)lattice, view->granularity);
  return view->centre + view->shrink * (x - view->centre);
}

double estimate_stddev(const struct view *view, uint64_t clock) {
  return published_up(view->shrink * ldexp(sqrt((double)clock), view->granularity));
}

double estimate_half_width(double stddev, double confidence) {
  return published_up(stddev * gsl_cdf_ugaussian_Qinv((1 - confidence) / 2));
}
