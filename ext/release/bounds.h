/*
** bounds.h: what a clip would cut off, by the noisy counts of a release of bounds, and where
** published bounds may be used. The counts are published already, so this is post-processing, and
** costs nothing.
*/
#ifndef DIFFUSE_RELEASE_BOUNDS_H
#define DIFFUSE_RELEASE_BOUNDS_H

#include "release/parameters.h"
#include "release/publication.h"
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

/* ---- where published bounds may be used ------------------------------------------------------ */

/*
** Published bounds carry information. If another release takes its clip or its range from them,
** this information reaches every tier at which that release is published, through the clip and the
** lattice. The bounds may therefore be used at the tier where they were published, and inside this
** tier. An outer tier uses the bounds that dp_diffuse() published there.
*/

/*
** Checks that `request` takes no parameter from `bounds` that the outermost tier of the request
** does not see. `bounds` is a publication that has its answer. The function compares the parameter
** with the published ends, both without their signs. A parameter other than 0 counts as taken from
** an end if it equals an end that was published further in than the request's outermost tier. It
** does not count if it also equals an end that the outermost tier sees, or if it is the default. If
** `bounds` is of another kind, the function does nothing and returns 1. Otherwise returns 1, or 0
** with an error. Call bounds_use_check() inside a transaction.
*/
int bounds_use_check(const struct publication *bounds, const struct request *request);

#endif
