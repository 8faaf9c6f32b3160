/*
** estimate.h: computes the published numbers from a lattice point. This is post-processing, so
** floating point is safe here.
**
** Each family has its own estimator (sums/family.h). Every estimator returns values with the
** standard deviation of their noise and a 95% interval. Averages, spreads and quantiles are not
** linear in the point; for them, these figures are first-order approximations at the estimate
** itself.
*/
#ifndef DIFFUSE_MECHANISM_ESTIMATE_H
#define DIFFUSE_MECHANISM_ESTIMATE_H

#include <stdint.h>

#include "mechanism/sgd.h"

/* How a point is shown: value = centre + shrink (x - centre), x = lattice value * 2^granularity. */
struct view {
  const struct noise_law *noise;
  int granularity, shift;
  uint64_t clock;            /* variance of each coordinate, in lattice steps */
  int is_ou;                 /* 0: shrink is 1 */
  double centre;             /* does not depend on the data */
  double radius, theta, rho; /* NaN if not given */
  int dimension;             /* of the vector that shrinks */
};

/*
** The OU shrink of a vector whose coordinates have noise of variance `tau`. By default, it is that
** of Theorem 8 of Balle et al. 2019; the public `radius` bounds the norm of the true answer minus
** the centre. If theta is given, it is that of the homogeneous process dX = -theta (X - centre) dt
** + sqrt(2) rho dW.
*/
double estimate_shrink(const struct view *view, double tau);

/* Returns the noise variance of a coordinate, in the unit of its value if its factor is 1. */
double estimate_variance(const struct view *view);

/* Returns the standard deviation of the noise in a sum that this view shows, rounded up. */
double estimate_stddev(const struct view *view);

/*
** Returns the noise that can be predicted before there is data, as a standard deviation, rounded
** up. For a sum, count or bin, it is the noise of the published number. For an average, or the
** variance of a spread, it is an upper bound on the noise times the number of rows. For a median,
** it is the noise of the rank.
*/
struct reading;
double estimate_total_stddev(const struct reading *reading);

/* One published number. */
struct estimate {
  int cell, component;
  double value, stddev, low, high;
};

/* The data that estimators need beside the layout. */
struct reading {
  const struct contribution *question;
  const struct layout *shape;
  struct view view;
  int cells;               /* the number of cells of the point */
  int root;                /* for a spread: show the standard deviation, not the variance */
  const double *quantiles; /* for trees: the requested quantiles, in [0, 1] */
  int quantile_count;
  double selection_delta;        /* private keys: probability that a unit reveals its own key */
  const struct descent *descent; /* of a model */
  double shrink;                 /* of the coordinates; set by estimate_point(); 1 for averages */
};

/* The largest number of estimates that estimate_point() can return. */
int estimate_room(const struct reading *reading);

/*
** Reads a point. Fills estimates and returns their number, or -1 when out of memory. Shows a
** private key only if its noisy count reaches estimate_threshold().
*/
int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The families' estimators, for sums and for statistics computed from sums. */
estimate_values estimate_sums, estimate_bins, estimate_means, estimate_vector_means,
    estimate_spreads, estimate_quantiles, estimate_coefficients;

/*
** The families' versions of estimate_total_stddev(): for a sum, a mean, ..., the rank of a median.
*/
total_stddev estimate_sum_stddev, estimate_mean_stddev, estimate_vector_mean_stddev,
    estimate_spread_stddev, estimate_rank_stddev, estimate_coefficient_stddev;

/*
** Returns the weighted sum of `count` independent estimates of the same component, as an estimate
** for a cell.
*/
struct estimate estimate_mixed(const struct view *view, const struct estimate *from, int count,
                               const double *weights, int cell);

/*
** Returns the least noisy count, in lattice steps, at which a private key is shown. A unit's counts
** have a norm of at most C over at most m keys, so each count is at most C. With probability at
** least 1 - delta, noise raises none of these m counts above C + sigma * Phi^-1((1 - delta)^(1/m)).
** The threshold is two steps higher, for rounding and for the tail of the discrete Gaussian
** (Canonne, Kamath and Steinke 2020, Proposition 25).
*/
double estimate_threshold(const struct reading *reading);

#endif
