/*
** estimate.h: computes the published numbers from a lattice point. This is post-processing, so
** floating point is safe here.
**
** Each family has its own estimator (sums/layout.h): estimate_means.c, estimate_spreads.c,
** estimate_quantiles.c and estimate_tables.c; estimate.c has the sums, and what comes after all of
** them. The estimators return each value with the standard deviation of its noise and an interval;
** only estimate_bounds() returns neither.
** Averages, spreads and quantiles are not linear in the point. Their standard deviations are
** first-order approximations at the estimate.
*/
#ifndef DIFFUSE_MECHANISM_ESTIMATE_H
#define DIFFUSE_MECHANISM_ESTIMATE_H

#include "mechanism/lattice_design.h"
#include "mechanism/reading.h"

/*
** Returns a standard deviation of the noise, computed from public parameters only and rounded up.
** For a sum, count or bin, this is the standard deviation of the published number. For an average
** and for a variance, this number divided by the number of rows is an upper bound on the standard
** deviation. For a median, this is the standard deviation of the rank.
*/
double estimate_total_stddev(const struct reading *reading);

/*
** Returns the half-width of the interval of a published number. `rows` is a public guess of the
** number of rows. The result is in the unit of the published number and rounded up. For an average
** and a variance the result is an upper bound. For a standard deviation and a quantile, the
** function assumes that the rows are spread evenly over [low, high]. The half-width of a quantile
** includes half a leaf.
*/
double estimate_half_width(const struct reading *reading, double rows);

/*
** For cross tables: sets parts[i] to the standard deviation of the noise in a cell of the published
** table i, in units of that of a coordinate of the point. Returns 1, or 0 if memory runs out.
*/
int estimate_parts(const struct layout *shape, double *parts);

/* The largest number of estimates that estimate_point() can return. */
int estimate_room(const struct reading *reading);

/*
** Computes the estimates of a point and returns their number, or -1 if memory runs out. The
** function drops a private key whose noisy count is below estimate_threshold().
*/
int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The families' estimators, for sums and for statistics computed from sums. */
estimate_values estimate_sums, estimate_means, estimate_paired_means, estimate_vector_means,
    estimate_spreads, estimate_tripled_spreads, estimate_quantiles, estimate_bounds;

/*
** The number that a draw of a leaf publishes (leaf_draw.h). The only value of its point is the
** index of the leaf. What is public bounds the error in rank and not that of the number, so the
** estimate has neither a standard deviation nor an interval.
*/
estimate_values estimate_leaf;

/* Computes the estimates of all tables. The family's estimator reads the numbers of one table. */
int estimate_tables(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The ranges of averages and quantiles, of spreads, and of averages of vectors (sums/layout.h). */
value_range range_of_x, range_of_spreads, range_of_components;

/* The functions that estimate_total_stddev() calls, one for each sort of family. */
total_stddev estimate_sum_stddev, estimate_mean_stddev, estimate_paired_mean_stddev,
    estimate_vector_mean_stddev, estimate_spread_stddev, estimate_tripled_spread_stddev,
    estimate_rank_stddev;

/*
** Returns the weighted sum of `count` independent estimates of the same component, as an estimate
** for the cell `cell`.
*/
struct estimate estimate_mixed(const struct reading *reading, const struct estimate *from,
                               int count, const double *weights, int cell);

/*
** Returns the smallest noisy count, in lattice steps, for which a private key is shown. One unit
** contributes to the counts of at most m keys, and the norm of its contributions is at most C, so
** it adds at most C to each count. Let Q be the number that the noise of one count exceeds with
** probability 1 - (1 - delta)^(1/m). With probability at least 1 - delta, noise then raises none of
** these m counts above C + Q. The noise of a count is one draw, or the sum of several draws if the
** count is the sum of several components. The threshold is C + Q plus two steps for each draw,
** which cover rounding and the tails of the discrete distributions.
*/
double estimate_threshold(const struct reading *reading);

/*
** For a release of kind 'bounds': returns a count in lattice steps. A bin is taken to have rows if
** its noisy count is above the returned count. If no bin has rows, the probability that the noise
** of some bin exceeds the returned count is at most BOUNDS_ALARM.
*/
#define BOUNDS_ALARM 1e-3
double estimate_bounds_threshold(const struct reading *reading);

#endif
