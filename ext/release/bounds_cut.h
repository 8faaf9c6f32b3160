/*
** bounds_cut.h: what a clip would cut off, by the noisy counts of a release of bounds. The counts
** are published already, so this is post-processing, and costs nothing.
*/
#ifndef DIFFUSE_RELEASE_BOUNDS_CUT_H
#define DIFFUSE_RELEASE_BOUNDS_CUT_H

#include "release/session.h"
#include "sums/layout.h"

/* Noisy numbers of units whose one value lies between two powers of two, without regard to sign. */
struct bounds_counts {
  double list[LAYOUT_EXPONENTS + 1]; /* by size: 0, then (0, 2^least], and so on */
  double half_width;                 /* of the noise of each number, 95% */
  int signs;                         /* 2: both signs have units */
  int last; /* the largest size where the counts show units; 0: none above 0 */
};

/* The share of the total of all units that a clip cuts off: a 95% interval. */
struct bounds_cut {
  double low, high;
};

/*
** Reads the counts of a release of bounds at a tier where it is published. Call it inside a
** transaction. Returns 1, or 0 after setting the session's error.
*/
int bounds_counts_read(struct bounds_counts *counts, struct session *session, const char *name,
                       const char *tier);

/* Returns the upper end of the sizes at a place of the list. */
double bounds_size(int place);

/*
** Returns what a clip cuts off of units that lie within the bounds, by the idea of Fieller (1954).
** The interval covers the noise of the counts, and that a value may lie anywhere between its two
** powers of two.
*/
struct bounds_cut bounds_cut(const struct bounds_counts *counts, double clip);

#endif
