/*
** family.h: families of kinds. A kind is what one aggregate function computes, such as dp_avg. A
** family says how a row is added to its cell, how a unit's vector is bounded, and how estimates are
** made from a noisy point.
**
** A family is one constant struct of functions and of properties that do not depend on the data.
** Kinds of one family, such as dp_avg and dp_ou_avg, differ only in their arguments and their
** noise. The families are in mechanism/families.c. Other code reads the properties of a family or
** calls its functions, and never asks which family it is.
*/
#ifndef DIFFUSE_SUMS_FAMILY_H
#define DIFFUSE_SUMS_FAMILY_H

#include <stdint.h>

#include "sums/identity.h"

/*
** The statistic that a kind computes from the rows. The statistic decides which mechanisms can
** release the kind. Each value is one bit, so that an integer can hold a set of statistics.
*/
enum statistic {
  STATISTIC_NUMBER = 1,   /* one sum (sums/scalar_sum.h) */
  STATISTIC_VECTOR = 2,   /* several sums (sums/vector_sum.h) */
  STATISTIC_CATEGORY = 4, /* one of the public categories */
  STATISTIC_REPORTS = 8,  /* one report for each row */
  STATISTIC_MODEL = 16,   /* coefficients of a model (models/sgd.h) */
  STATISTIC_LEAF = 32     /* the leaf of one quantile (mechanism/leaf_draw.h) */
};

struct vector_sum;
struct reading;
struct estimate;

/*
** Adds a row to a vector of sums. The row belongs to `unit` and to `cell` (0 without keys) and has
** the value x. Returns 1, or 0 if memory runs out.
*/
typedef int add_to_cell(struct vector_sum *vectors, struct identity unit, int cell, double x);

/*
** Computes estimates from the values of a point (mechanism/estimate.h). Returns the number of
** estimates, or -1 if memory runs out.
*/
typedef int estimate_values(struct reading *reading, const int64_t *values,
                            struct estimate *estimates);

/*
** Returns the standard deviation of the noise, computed from public parameters only
** (estimate_total_stddev()).
*/
typedef double total_stddev(const struct reading *reading);

/*
** Returns the range in which the numbers of the family lie, whatever the rows are. `root`: the
** numbers are standard deviations, not variances.
*/
struct contribution;
struct range {
  double least, most;
};
typedef struct range value_range(const struct contribution *question, int root);

struct family {
  enum statistic statistic;

  /*
  ** Laplace noise needs vectors that are bounded in the sum norm (the sum of magnitudes). To have
  ** the least noise in this norm, a vector needs different components (math/README.md). l1 is the
  ** family with these components for the same statistic. l1 is null if there is no such family, or
  ** if this family is already the one for the sum norm. is_l1 is 1 if all norms below are sums of
  ** magnitudes, not Euclidean norms.
  */
  const struct family *l1;
  int is_l1;
  /* The family of a mechanism that draws one of the bins instead of adding noise; null: none. */
  const struct family *drawn;
  int radius_bits; /* binary digits of the size of a unit in fine steps; 0: the usual number */

  /*
  ** A unit's vector has one cell for each key, or a single cell. With has_bins, each cell has one
  ** bin for each part of [low, high].
  */
  int has_keys;
  int has_tables; /* cells can be those of cross tables instead (ways.h) */
  int has_bins;
  int is_tree; /* the bins are leaves of a tree, and the tree's inner nodes are coordinates too */
  /*
  ** The bins are those of layout_exponent_bin(). The estimates are the two ends of the range in
  ** which bins show rows. There is no estimate if no bin shows rows, and no interval around an end.
  */
  int by_exponent;

  /* The components of a cell. */
  int components;
  int has_vector;        /* a cell has one more component for each number of the row's vector */
  int counts;            /* component 0 counts rows */
  int counts_if_private; /* with private keys, a further component counts units and comes first */
  int shares;            /* number of components whose sum is the count; 0: see `counts` */
  double count_factor;   /* the factor of the component that counts */
  /* 1: count_factor is multiplied by clip, because clip bounds a norm, not a number of rows */
  int count_in_clips;
  int count_falls; /* the factor falls with the size of the vector (layout.c) */
  /* The estimate divides sums by the count, so sums and count are clipped together. */
  int is_ratio;
  /* Each cell of a unit is bounded on its own, whatever the unit's other cells hold. */
  int each;
  double row_norm; /* the largest norm of a row's components if clip is 1 */
  /* Largest distance between two clipped vectors, divided by the largest norm (layout.h). */
  double spread;
  int rounds_off_curve; /* rounding may move a row away from the curve that `spread` assumes */

  add_to_cell *add; /* null: rows are vectors, or vector_sum.h is not used */

  /* Properties of the publication. */
  /* The published value is linear in the sums, so its noise does not depend on the data. */
  int is_linear;
  int shrinks_average; /* the Ornstein-Uhlenbeck kinds shrink averages of x to mid-range */
  int has_states;      /* rows can be added up in parts (dp_partial) */
  /*
  ** The columns that dp_release() expects of a query. If null, these are the columns among key, x
  ** and unit that the kind uses.
  */
  const char *columns;
  estimate_values *estimate; /* null: the kind publishes no point of a lattice */
  total_stddev *stddev;
  value_range *range; /* null: every number is possible */
};

#endif
