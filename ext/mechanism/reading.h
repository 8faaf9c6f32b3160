/*
** reading.h: how a lattice point is read: its coordinates, their noise, and the intervals around
** what is computed from them. The estimators (estimate.h) share this.
*/
#ifndef DIFFUSE_MECHANISM_READING_H
#define DIFFUSE_MECHANISM_READING_H

#include <math.h>
#include <stdint.h>

/*
** The parameters that convert a coordinate of a point to a value: value = centre + shrink (x -
** centre), where x = lattice value * 2^granularity.
*/
struct view {
  const struct noise_law *noise;
  int granularity, shift;
  uint64_t clock;            /* variance of each coordinate, in squared lattice steps */
  int is_ou;                 /* 0: shrink is 1 */
  double centre;             /* a public parameter, never computed from the data */
  double radius, theta, rho; /* NaN if not given */
  int dimension;             /* dimension of the vector that shrinks */
  /*
  ** For numbers that are computed from several coordinates (a cell of a cross table, a span of a
  ** series): the standard deviation of their noise, divided by that of a coordinate. Otherwise 0.
  */
  double part;
};

/*
** Returns the factor by which the OU mechanism shrinks a vector whose coordinates have noise of
** variance `tau`. By default, the factor is the one in Theorem 8 of Balle et al. 2019. In this
** theorem the public `radius` bounds the norm of the true answer minus the centre. If theta is
** given, the factor is that of the process dX = -theta (X - centre) dt + sqrt(2) rho dW. Without
** OU, the factor is 1.
*/
double estimate_shrink(const struct view *view, double tau);

/* Returns the noise variance of a coordinate x, where x = lattice value * 2^granularity. */
double estimate_variance(const struct view *view);

/* Returns the standard deviation of the noise in a published sum, rounded up. */
double estimate_stddev(const struct view *view);

/*
** One published number, the standard deviation of its noise, and the interval [low, high], which
** contains the true number with at least the confidence of the reading, or nearly: averages and
** spreads of many rows and quantiles have first-order intervals. The true number is the one that
** the clipped rows have. low <= value <= high, and no number leaves the range of its family. The
** interval of an OU release is that before the value moves towards the centre. The interval of a
** private key has its confidence among the releases that publish the key.
*/
struct estimate {
  int cell, component;
  double value, stddev, low, high;
};

/* The input of the estimators, apart from the values of the point. */
struct reading {
  const struct contribution *question;
  const struct layout *shape;
  struct view view;
  int cells;               /* the number of cells of the point */
  double confidence;       /* of the intervals, in (0, 1) */
  int root;                /* for a spread: show the standard deviation, not the variance */
  const double *quantiles; /* for trees: the requested quantiles, in [0, 1] */
  int quantile_count;
  const double *numbers; /* for a cross table, the numbers of its cells instead of a point */
  /* For private keys: largest probability that a unit reveals a key that no other unit has. */
  double selection_delta;
  const void *details; /* what only this kind has (release/procedure.h) */
  /* Shrink factor of the coordinates; 1 for averages; set by estimate_point(). */
  double shrink;
};

/* If the noise of the number of rows is at most this part of it, ratios are nearly linear. */
#define LINEAR_PART 0.1

static inline double clamp(double x, double low, double high) {
  return x > low ? fmin(x, high) : low;
}

/* Returns the standard deviation of the noise of a coordinate. */
double view_noise(const struct view *view);

/* Returns a coordinate of the point, as a number instead of lattice steps. */
double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component);

/* Returns the noisy number of rows in a cell. */
double reading_rows(const struct reading *reading, const int64_t *values, int cell);

/* Returns (high - low)/2. */
double reading_half_range(const struct reading *reading);

/*
** Returns the half-width of the interval of an estimate that is computed from several coordinates
** and has a standard deviation of 1.
*/
double reading_mixed_width(const struct reading *reading);

/*
** Returns an estimate with its interval. If `is_mixed` is 0, the estimate is one coordinate of the
** point, and its noise comes from one draw. Otherwise it is computed from several coordinates.
*/
struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed);

#endif
