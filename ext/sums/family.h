/*
** family.h: a family of kinds: what a row adds to its cell, how a unit's vector is bounded, and how
** a point is read.
**
** A family is one constant struct of public facts and functions. Kinds of one family (dp_avg and
** dp_ou_avg) differ in their arguments and their noise only. The families are in
** mechanism/families.c: code asks a family for a fact or calls one of its functions, and never asks
** which family it is.
*/
#ifndef DIFFUSE_SUMS_FAMILY_H
#define DIFFUSE_SUMS_FAMILY_H

#include <stdint.h>

#include "sums/identity.h"

/* What the rows come to, which decides which mechanisms can release it. Bits, for sets of them. */
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
** memory ran out.
*/
typedef int add_to_cell(struct vector_sum *vectors, struct identity unit, int cell, double x);

/* Fills the estimates of a point; how many, or -1 without memory (mechanism/estimate.h). */
typedef int estimate_values(struct reading *reading, const int64_t *values,
                            struct estimate *estimates);

/* The standard deviation of the noise before there is data (estimate_total_stddev()). */
typedef double total_stddev(const struct reading *reading);

struct family {
  enum statistic statistic;

  /* The cells of a unit's vector: one for each key, or for each bin of [low, high], or one. */
  int has_keys;
  int has_bins;
  int is_tree; /* the bins are leaves; the coordinates are the nodes above them too */

  /* The components of a cell. */
  int components;
  int has_vector;        /* and as many as the vector has */
  int counts;            /* component 0 counts rows */
  int counts_if_private; /* and one more, before them, that counts units where keys are private */
  double count_factor;   /* of the component that counts */
  int count_in_clips;    /* the factor is in the unit of clip: clip bounds a norm, not rows */
  int is_ratio;          /* sums are divided by the count, and scaled down with it */
  int each;              /* what a unit has in a cell is bounded by itself, whatever the others */
  double row_norm;       /* the largest norm of a row's components where clip is 1 */
  double spread;         /* two vectors are at most so many times their norm apart (layout.h) */
  int rounds_off_curve;  /* rounding may move a row off the curve that `spread` is about */

  add_to_cell *add; /* null: rows are vectors, or not for vector_sum.h */

  /* What is published. */
  int is_linear;       /* a linear function of the sums: its noise does not depend on the data */
  int shrinks_average; /* the Ornstein-Uhlenbeck mechanism shrinks the average, not the sums */
  int has_states;      /* rows can be added up in parts (dp_partial) */
  const char *columns; /* of a query for dp_release(); null: key, x and unit, what there is */
  estimate_values *estimate; /* null: no point of a lattice is published */
  total_stddev *stddev;
};

#endif
