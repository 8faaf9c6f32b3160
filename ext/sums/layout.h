/*
** layout.h: the layout of one privacy unit's vector, and the bounds on it.
**
** A release is a vector of coordinates. Rows fall into cells (group keys, bins of a histogram,
** leaves of a tree; or a single cell) and add to each component of their cell: a count, sums. A
** unit thus has a sparse matrix of exact integers, cells times components. Before units are added
** up, each matrix is scaled to fit a ball; the sensitivity of the sum is the radius. The layout
** depends only on the public parameters.
**
** Fine steps: component j of a row is round(value * factor_j * scale) steps, scale a power of two
** such that the radius of the whole is an integer of 53 bits. factor is 1, except for a count that
** is released together with sums: there it divides the noise between the count and the sums.
*/
#ifndef DIFFUSE_SUMS_LAYOUT_H
#define DIFFUSE_SUMS_LAYOUT_H

#include <stdint.h>

#include "sums/family.h"

/* The public parameters of a release that shape its vector. */
struct contribution {
  const struct family *family;
  int nonnegative;  /* single numbers only: contributions lie in [0, clip] */
  double clip;      /* norm of a unit's vector, in the unit of x; or rows that a unit counts for */
  double low, high; /* range of x: means, spreads, bins, trees */
  int size;         /* dimension of vectors, number of bins or leaves */
  int keys;         /* number of public keys; KEYS_PRIVATE; 0 without keys */
  int max_groups;   /* number of private keys that a unit may have */
};
#define KEYS_PRIVATE (-1)

/*
** Bounds on parameters. Outside them the lattice would exceed the range of doubles, or memory would
** not be sufficient.
*/
#define LAYOUT_MAX_RANGE  1e100 /* of x: its square must be finite too */
#define LAYOUT_MIN_ROWS   0.01  /* least clip, as a number of rows, if there are several sums */
#define LAYOUT_MAX_ROWS   1e9
#define LAYOUT_MIN_CLIP   1e-150
#define LAYOUT_MAX_CLIP   1e150
#define LAYOUT_MAX_SIZE   4096  /* dimension of a vector */
#define LAYOUT_MAX_BINS   65536 /* of a histogram, leaves of a tree */
#define LAYOUT_MAX_GROUPS 1024  /* private keys of a unit */
#define LAYOUT_MAX_KEYS   (1 << 20)

/*
** A run of components that are clipped together. If the norm of the leading components exceeds
** lead_reach, the whole block is scaled down until it does not. The norm of the whole block is then
** at most reach, exactly.
*/
struct block {
  int first, lead_end, end; /* [first, lead_end) leads [first, end) */
  int64_t lead_reach, reach;
  double spread; /* two vectors inside are at most spread * reach apart (for 'replace') */
};

struct layout {
  const struct family *family;
  int cells;           /* 0: private keys, which are unknown until rows are read */
  int components;      /* of each cell */
  int coordinates;     /* of the release; 0: private keys */
  int counts;          /* component 0 counts rows */
  int touched;         /* the largest number of coordinates in which two neighbours differ */
  int max_groups;      /* cells that a unit may have; 0: any number */
  int64_t each;        /* the most steps that a unit counts in a cell; 0: no limit */
  int levels;          /* of the tree; 0: none */
  double count_factor; /* of component 0, where it counts */
  double scale;
  int fine_exponent;   /* scale = 2^-fine_exponent */
  int64_t count_steps; /* what one row adds to component 0, where it counts */
  uint64_t distance;   /* of two neighbours, in fine steps: the sensitivity before rounding */
  int block_count;
  struct block blocks[2];
};

/*
** Fills a shape. by_unit: units are protected, not rows. replace: neighbours replace a unit instead
** of adding or removing one.
**
** distance: adding or removing a unit moves the sum by its vector, of norm R at most. Replacing it
** moves the sum by the difference of two such vectors, at most `spread` times R:
**   sums     2
**   counts   sqrt(2): no component is negative, so the two have no obtuse angle
**   means    4/sqrt(5): (1/2, u) lies in a cone of half angle arctan 2; products of such cones too
**   spreads  the two are n (1, u, 2u^2 - 1) and mixtures of such with n <= clip: at the ends of
**            the curve, at u = 1 and v = (sqrt(1/2) - 1)/2, they are 2.26818 clip apart,
**            1.30953 times R = sqrt(3) clip
** Truncation may move a clipped vector out of its cone, by less than a step for each coordinate; so
** may the rounding of a row of a spread (that of a mean does not: |u| <= 1 is round(|u| scale) <=
** scale).
*/
void layout_make(struct layout *shape, const struct contribution *question, int by_unit,
                 int replace);

/*
** Changes the reach and distance of a model to those of a smaller clip, on the same lattice, for
** neighbours that replace a row.
*/
void layout_narrow(struct layout *shape, double clip);

/* Maps x in [low, high] to u in [-1, 1]. Values outside count as the nearer end, NaN as 0. */
double layout_centred(double x, double low, double high);

/*
** The bin of x among `bins` equal bins of [low, high]. Values outside fall into the first or last
** bin.
*/
int layout_bin(double x, double low, double high, int bins);

#endif
