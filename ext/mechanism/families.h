/*
** families.h: the families of sums (sums/layout.h). A kind of release belongs to one family. The
** comments below say what a row adds to its cell: x is its value, and u is (x - middle)/half, where
** middle is the middle of [lo, hi] and half is half the length of [lo, hi].
*/
#ifndef DIFFUSE_MECHANISM_FAMILIES_H
#define DIFFUSE_MECHANISM_FAMILIES_H

#include "sums/layout.h"

extern const struct family family_sum;         /* x, or 1; one number without cells */
extern const struct family family_mean;        /* 1 and u */
extern const struct family family_spread;      /* 1, u and 2 u^2 - 1 */
extern const struct family family_vector;      /* the components of a vector */
extern const struct family family_vector_mean; /* 1 and the components of a vector */
extern const struct family family_bins;        /* 1, in a bin of [lo, hi] */
extern const struct family family_bounds;      /* 1, in the bin of its sign and exponent */
extern const struct family family_tree;        /* 1, in a leaf and the nodes above it */
extern const struct family family_key_bins;    /* as family_bins, in a cell for each key */
extern const struct family family_key_tree;    /* as family_tree, in a cell for each key */
extern const struct family family_key_units;   /* 1 for each unit, in a cell for each key */
extern const struct family family_key_count;   /* 1, in a cell for each key */
extern const struct family family_key_sum;     /* x, in a cell for each key */
extern const struct family family_key_mean;    /* 1 and u, in a cell for each key */
extern const struct family family_key_spread;  /* 1, u and 2 u^2 - 1, in a cell for each key */

#endif
