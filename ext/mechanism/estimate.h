/* estimate.h: how a lattice point is read, and how the published numbers are computed from it. This
** is post-processing, so floating point is safe here.
**
** Each family has its own estimator (sums/layout.h): estimate_moments.c, estimate_quantiles.c and
** cross_tables.c; estimate.c has the sums, and what comes after all of them. The estimators return
** each value with the standard deviation of its noise and an interval; only estimate_bounds()
** returns neither. Averages, spreads and quantiles are not linear in the point. Their standard
** deviations are first-order approximations at the estimate. */
#ifndef DIFFUSE_MECHANISM_ESTIMATE_H
#define DIFFUSE_MECHANISM_ESTIMATE_H

#include <math.h>
#include <stdint.h>

#include "mechanism/mechanism.h"
#include "sums/ways.h"

/* The parameters that convert a coordinate of a point to a value: value = centre + shrink (x -
** centre), where x = lattice value * 2^granularity. */
struct view {
  const struct noise_law *noise;
  int granularity, shift;
  uint64_t clock;            /* variance of each coordinate, in squared lattice steps */
  int is_ou;                 /* 0: shrink is 1 */
  double centre;             /* a public parameter, never computed from the data */
  double radius, theta, rho; /* NaN if not given */
  int dimension;             /* dimension of the vector that shrinks */
  /* For numbers that come from several coordinates (a cell of a cross table, a span of a series):
  ** the standard deviation of their noise, divided by that of a coordinate. Otherwise 0. */
  double part;
};

/* Returns the factor by which the OU mechanism shrinks a vector whose coordinates have noise of
** variance `tau`: by default that of Theorem 8 of Balle et al. 2019, in which the public `radius`
** bounds the norm of the true answer minus the centre; if theta is given, that of the process dX =
** -theta (X - centre) dt + sqrt(2) rho dW; without OU, 1. */
double estimate_shrink(const struct view *view, double tau);

/* Returns the noise variance of a coordinate x, where x = lattice value * 2^granularity. */
double estimate_variance(const struct view *view);

/* Returns the standard deviation of the noise in a published sum, rounded up. */
double estimate_stddev(const struct view *view);

/* One published number, the standard deviation of its noise, and the interval [low, high], which
** contains the true number with at least the confidence of the reading, or nearly: averages and
** spreads of many rows and quantiles have first-order intervals. The true number is the one that
** the clipped rows have. low <= value <= high, and no number leaves the range of its family. The
** interval of an OU release is that before the value moves towards the centre. The interval of a
** private key has its confidence among the releases that publish the key. */
struct estimate {
  int cell, component;
  double value, stddev, low, high;
};

/* A statistic inside another one: the count of an average or a spread, the average of a spread. */
enum inside { INSIDE_NOTHING, INSIDE_COUNT, INSIDE_AVERAGE };

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
  /* Private keys: the largest probability that a unit reveals a key that no other unit has. */
  double selection_delta;
  const void *details; /* what only this kind has (release/procedure.h) */
  enum inside inside;  /* the statistic to estimate; INSIDE_NOTHING: the statistic itself */
  /* Shrink factor of the coordinates; 1 for averages; set by estimate_point(). */
  double shrink;
};

/* If the noise of the number of rows is at most this part of it, ratios are nearly linear. */
#define LINEAR_PART 0.1

static inline double clamp(double x, double low, double high) {
  return x > low ? fmin(x, high) : low;
}

/* The standard deviation of the noise of a coordinate; a coordinate as a number instead of lattice
** steps; the noisy number of rows in a cell; and (high - low)/2. */
double view_noise(const struct view *view);
double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component);
double reading_rows(const struct reading *reading, const int64_t *values, int cell);
double reading_half_range(const struct reading *reading);

/* The half-width for an estimate from several coordinates with a standard deviation of 1. */
double reading_mixed_width(const struct reading *reading);

/* Returns an estimate with its interval. With `is_mixed`, it comes from several coordinates of the
** point, otherwise from one, whose noise is one draw. */
struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed);

/* ---- estimates ------------------------------------------------------------------------------- */

/* Returns a standard deviation of the noise, from public parameters only and rounded up: for a sum,
** count or bin that of the published number; for an average and a variance an upper bound on it,
** times the number of rows; for a median that of the rank. */
double estimate_total_stddev(const struct reading *reading);

/* Returns the half-width of the interval of a published number, in its unit and rounded up. `rows`
** is a public guess of the number of rows. For an average and a variance it is an upper bound. For
** a standard deviation and a quantile it assumes that the rows are spread evenly over [low, high].
** That of a quantile includes half a leaf. */
double estimate_half_width(const struct reading *reading, double rows);

/* For cross tables: sets parts[i] to the standard deviation of the noise in a cell of the published
** table i, in units of that of a coordinate of the point. Returns 0 if memory runs out. */
int estimate_parts(const struct layout *shape, double *parts);

/* The most estimates that estimate_point() returns. */
int estimate_room(const struct reading *reading);

/* Computes the estimates of a point and returns their number, or -1 if memory runs out. Drops a
** private key whose noisy count is below estimate_threshold(). */
int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The families' estimators, for sums and for statistics computed from sums. */
estimate_values estimate_sums, estimate_means, estimate_paired_means, estimate_vector_means,
    estimate_spreads, estimate_tripled_spreads, estimate_quantiles, estimate_bounds;

/* The number that a draw of a leaf publishes (exponential.h); the point is the index of the leaf.
** What is public bounds the error in rank and not that of the number, so there is neither a
** standard deviation nor an interval. */
estimate_values estimate_leaf;

/* Estimates the statistic inside an average or a spread that reading->inside names. */
estimate_values estimate_inside;

/* Computes the estimates of all tables. The family's estimator reads the numbers of one table. */
int estimate_tables(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The ranges of averages and quantiles, of spreads, and of averages of vectors (sums/layout.h). */
value_range range_of_x, range_of_spreads, range_of_components;

/* The functions that estimate_total_stddev() calls, one for each sort of family. */
total_stddev estimate_sum_stddev, estimate_mean_stddev, estimate_paired_mean_stddev,
    estimate_vector_mean_stddev, estimate_spread_stddev, estimate_tripled_spread_stddev,
    estimate_rank_stddev;

/* Returns the weighted sum of `count` independent estimates of one component, for a cell. */
struct estimate estimate_mixed(const struct reading *reading, const struct estimate *from,
                               int count, const double *weights, int cell);

/* Returns the smallest noisy count, in lattice steps, for which a private key is shown. One unit
** contributes to the counts of at most m keys, and the norm of its contributions is at most C, so
** it adds at most C to each count. Let Q be the number that the noise of one count exceeds with
** probability 1 - (1 - delta)^(1/m). With probability at least 1 - delta, noise then raises none of
** these m counts above C + Q. The noise of a count is one draw, or the sum of several draws if the
** count is the sum of several components. The threshold is C + Q plus two steps for each draw,
** which cover rounding and the tails of the discrete distributions. */
double estimate_threshold(const struct reading *reading);

/* For a release of kind 'bounds': the count, in lattice steps, above which a bin is taken to have
** rows. If no bin has rows, noise exceeds it in some bin with probability BOUNDS_ALARM at most. */
#define BOUNDS_ALARM 1e-3
double estimate_bounds_threshold(const struct reading *reading);

/* ---- cross tables ---------------------------------------------------------------------------- */

/* cross_tables.c divides the charge of a table programme (sums/ways.h) between its tables. A table
** A that is measured with the share w_A of the squared sensitivity has noise of variance v/w_A in
** each cell, where v is the variance of one count that is released alone. The published tables are
** the least-squares estimates (reconcile_tables()). With n(A) the number of cells of A, and n_i the
** number of keys of attribute i,
**
**     k_B = product over i in B of (n_i - 1)/n_i
**     p_B = sum over measured A that contain B of w_A n(B)/n(A)
**     variance of each cell of A = v * sum over B inside A of k_B/p_B (n(B)/n(A))^2
**
** The shares minimise f, the mean of these variances over all tables, weighted.
** All sums run in one fixed order in IEEE doubles, so every machine finds the same multipliers. */

/* Computes the multiplier of each table. Multipliers depend on sizes and weights only. For Gaussian
** noise, multiplier = floor(2^15 sqrt(q)), and 0 below q = 2^-12. If noise is charged in the sum
** norm (`in_sum_norm`), w_A = (m_A / sum of m)^2 and f is not convex; the best of three candidates
** is taken: m proportional to q, to q^2, or equal for the tables that are inside no other table. A
** table that is inside no other table gets at least 1. Returns 1, or 0 if memory runs out. */
int shares_multipliers(const struct ways *ways, int in_sum_norm, int *multipliers);

#endif
