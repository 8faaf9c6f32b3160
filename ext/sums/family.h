/*
** family.h: a family of kinds: how a row is added to its cell, how a unit's vector is bounded, and
** how a point is turned into estimates.
**
** A family is one constant struct of public facts and functions. Kinds of one family (dp_avg and
** dp_ou_avg) differ in their arguments and their noise only. The families are in
** mechanism/families.c. Other code reads the facts of a family or calls its functions, and never
** asks which family it is.
*/
#ifndef DIFFUSE_SUMS_FAMILY_H
#define DIFFUSE_SUMS_FAMILY_H

#include <stdint.h>

#include "sums/identity.h"

/*
** The statistic that a kind computes from the rows; it decides which mechanisms can release the
** kind. The values are bits, so that sets of them can be stored.
*/
enum statistic {
  STATISTIC_NUMBER = 1,   /* one sum (sums/scalar_sum.h) */
  STATISTIC_VECTOR = 2,   /* several sums (sums/vector_sum.h) */
  STATISTIC_CATEGORY = 4, /* one of the public categories */
  STATISTIC_REPORTS = 8,  /* one report for each row */
  STATISTIC_MODEL = 16    /* coefficients of a model (mechanism/sgd.h) */
};

struct vector_sum;
struct reading;
struct estimate;

/*
** Adds a row to a vector of sums: its unit, its cell (0 without keys) and x. Returns 1, or 0 when
** out of memory.
*/
typedef int add_to_cell(struct vector_sum *vectors, struct identity unit, int cell, double x);

/*
** Computes the estimates of a point. Returns how many, or -1 when out of memory
** (mechanism/estimate.h).
*/
typedef int estimate_values(struct reading *reading, const int64_t *values,
                            struct estimate *estimates);

/* The standard deviation of the noise, from public parameters only (estimate_total_stddev()). */
typedef double total_stddev(const struct reading *reading);

struct family {
  enum statistic statistic;

  /*
  ** A unit's vector has one cell for each key, or one for each bin of [low, high], or a single
  ** cell.
  */
  int has_keys;
  int has_bins;
  int is_tree; /* the bins are leaves of a tree, whose inner nodes are coordinates too */

  /* The components of a cell. */
  int components;
  int has_vector;        /* and one more for each number of the vector */
  int counts;            /* component 0 counts rows */
  int counts_if_private; /* private keys: one more, the first, that counts units */
  double count_factor;   /* the factor of the component that counts */
  int count_in_clips;    /* the factor is relative to clip, which bounds a norm, not rows */
  int is_ratio;          /* sums are divided by the count, and clipped together with it */
  int each;              /* each cell of a unit has its own bound, whatever the other cells are */
  double row_norm;       /* the largest norm of a row's components if clip is 1 */
  double spread;         /* largest distance of two vectors, in units of their norm (layout.h) */
  int rounds_off_curve;  /* rounding may move a row off the curve that `spread` assumes */

  add_to_cell *add; /* null: rows are vectors, or vector_sum.h is not used */

  /* The publication. */
  int is_linear;       /* it is linear in the sums, so its noise does not depend on the data */
  int shrinks_average; /* the Ornstein-Uhlenbeck mechanism shrinks the average, not the sums */
  int has_states;      /* rows can be added up in parts (dp_partial) */
  const char *columns; /* of a query for dp_release(); null: key, x and unit, what there is */
  estimate_values *estimate; /* null: no point of a lattice is published */
  total_stddev *stddev;
};

#endif
