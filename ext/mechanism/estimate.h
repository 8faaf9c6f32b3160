/*
** estimate.h: from a lattice point to what people read. Post-processing: floating point is fine
** here.
**
** Each family has its estimator (sums/family.h); all of them give values with the standard
** deviation of the noise in them and a 95% interval. For averages, spreads and quantiles, which are
** not linear in the point, these are first-order figures at the estimate itself.
*/
#ifndef DIFFUSE_MECHANISM_ESTIMATE_H
#define DIFFUSE_MECHANISM_ESTIMATE_H

#include <stdint.h>

#include "mechanism/sgd.h"

/* How a point is read: value = centre + shrink (x - centre), x = lattice value * 2^granularity. */
struct view {
  const struct noise_law *noise;
  int granularity, shift;
  uint64_t clock;            /* variance of each coordinate, in lattice steps */
  int is_ou;                 /* 0: shrink is 1 */
  double centre;             /* data-independent */
  double radius, theta, rho; /* NaN where not given */
  int dimension;             /* of what shrinks */
};

/*
** The OU shrink of a vector whose coordinates have noise of variance `tau`: Theorem 8 of Balle et
** al. 2019 for a public bound `radius` on the norm of the true answer minus the centre; or, where
** theta is given, that of the homogeneous process dX = -theta (X - centre) dt + sqrt(2) rho dW.
*/
double estimate_shrink(const struct view *view, double tau);

/* Variance of the noise of a coordinate, in the unit of its value where its factor is 1. */
double estimate_variance(const struct view *view);

/* Standard deviation of the noise in a sum that is shown with this view, rounded up. */
double estimate_stddev(const struct view *view);

/*
** What is known of the noise before there is data, rounded up: the standard deviation of a sum,
** count or bin as it is shown; of an average, or of the variance of a spread, times the number of
** rows, at most; of the rank of a median.
*/
struct reading;
double estimate_total_stddev(const struct reading *reading);

/* One published number. */
struct estimate {
  int cell, component;
  double value, stddev, low, high;
};

/* What the estimators need beside the shape. */
struct reading {
  const struct contribution *question;
  const struct layout *shape;
  struct view view;
  int cells;               /* of the point */
  int root;                /* of a spread: the standard deviation, not the variance */
  const double *quantiles; /* trees: the requested quantiles, in [0, 1] */
  int quantile_count;
  double selection_delta;        /* private keys: probability that a unit shows a key of its own */
  const struct descent *descent; /* of a model */
  double shrink; /* set by estimate_point(): that of its coordinates; 1 for averages */
};

/* The largest number of estimates that estimate_point() can return. */
int estimate_room(const struct reading *reading);

/*
** Reads a point: fills estimates and returns how many, or -1 when out of memory. Private keys are
** shown where their noisy count reaches estimate_threshold() only.
*/
int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The estimators of families: of sums, and of what is computed from them. */
estimate_values estimate_sums, estimate_bins, estimate_means, estimate_vector_means,
    estimate_spreads, estimate_quantiles, estimate_coefficients;

/* What estimate_total_stddev() is for families: of a sum, a mean, ..., the rank of a median. */
total_stddev estimate_sum_stddev, estimate_mean_stddev, estimate_vector_mean_stddev,
    estimate_spread_stddev, estimate_rank_stddev, estimate_coefficient_stddev;

/*
** The sum of `count` estimates of the same component, independent of each other, with these
** weights, as an estimate for a cell.
*/
struct estimate estimate_mixed(const struct view *view, const struct estimate *from, int count,
                               const double *weights, int cell);

/*
** Least noisy count, in lattice steps, with which a private key is shown: a unit's counts have a
** norm of at most C over at most m keys, so each is at most C, and by chance alone one of m exceeds
** C + sigma * Phi^-1((1 - delta)^(1/m)) with probability at most delta; two steps more for rounding
** and for the tail of the discrete Gaussian (Canonne, Kamath and Steinke 2020, Proposition 25).
*/
double estimate_threshold(const struct reading *reading);

#endif
