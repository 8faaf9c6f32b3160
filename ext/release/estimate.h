/*
** estimate.h: from a lattice point to what people read. Post-processing: floating point is fine here.
*/
#ifndef DIFFUSE_RELEASE_ESTIMATE_H
#define DIFFUSE_RELEASE_ESTIMATE_H

#include <stdint.h>

/* How a point is shown: value = centre + shrink (x - centre), x = lattice value * 2^granularity. */
struct view {
  int granularity;
  double centre; /* data-independent */
  double shrink; /* in (0, 1]; 1 for the Gaussian mechanism */
};

/*
** The OU shrink at variance `clock` (in lattice steps): Theorem 8 of Balle et al. 2019 for a public
** bound `radius` on the norm of the true answer minus the centre; or, where theta is given, that of
** the homogeneous process dX = -theta (X - centre) dt + sqrt(2) rho dW. NaN means not given; with
** neither the shrink is 1.
*/
double estimate_shrink(uint64_t clock, int granularity, int dimension, double radius, double theta,
                       double rho);

double estimate_value(const struct view *view, int64_t lattice);

/* Standard deviation of the noise in that value, rounded up. */
double estimate_stddev(const struct view *view, uint64_t clock);

/* Half-width of the central interval that holds the noise with this confidence, in (0, 1). */
double estimate_half_width(double stddev, double confidence);

#endif
