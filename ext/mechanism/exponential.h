/* exponential.h: the exponential mechanism: how strongly a draw prefers the better of its
** candidates, and the draw of one quantile. */
#ifndef DIFFUSE_MECHANISM_EXPONENTIAL_H
#define DIFFUSE_MECHANISM_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "sums/layout.h"

/* The probability of candidate i is proportional to exp(step utility[i]), where step = exponent /
** 2^CATEGORICAL_SHIFT (noise/noise.h). */
struct tilt {
  uint64_t exponent;
  /* The length of the interval of the privacy loss, from which the cost follows; for randomized
  ** response (categories/categories.c) the largest absolute value of this loss. */
  double epsilon;
};

/* The largest zCDP rate of a draw. Its epsilon is then below 600. */
#define TILT_MOST_RATE 500

/* The ledger has one theorem for all mechanisms with the name 'exponential'. */
#define EXPONENTIAL_THEOREM                                                                        \
  "exponential mechanism (McSherry and Talwar 2007), of bounded range (Dong, Durfee and Rogers "   \
  "2020; Cesar and Rogers 2021); for exact Gaussian accounting mu = 2 PhiInv(1/(1 + "              \
  "e^(-epsilon/2))); behind a kernel the worst pair of states"

/* Returns the tilt of a draw whose epsilon is at most `epsilon`. The changes that one unit makes to
** the utilities lie in an interval of length `range`, which is below 2^20. */
static inline struct tilt tilt_make(double epsilon, uint64_t range) {
  uint64_t exponent = (uint64_t)ldexp(epsilon / (double)range, CATEGORICAL_SHIFT);
  return (struct tilt){exponent, ldexp((double)exponent * (double)range, -CATEGORICAL_SHIFT)};
}

/* ---- a draw of one quantile from the leaves of its range ------------------------------------- */

/* Each row counts in one leaf. A unit's rows count at most `clip` together (family_leaves, in the
** sum norm). Let W be the sum of all leaves, W(< i) that of the leaves before leaf i, and W(<= i)
** that of the leaves up to leaf i. The quantile q has the rank t = q W + (1/2 - q), in rows. The
** loss of leaf i is the distance of t from the ranks in leaf i:
**
**     loss(i) = max(0, W(< i) - t, t - W(<= i))
**
** The exponential mechanism draws leaf i with a probability proportional to exp(-step loss(i)). Its
** cost depends on how differently one unit can change the losses of two leaves. All its changes lie
** in an interval of length 2 max(q, 1 - q) clip, or of length 2 clip if a unit is replaced
** (math/README.md).
**
** All of this is computed with integers. q is a multiple of 2^-LEAF_DRAW_SHARE, and a loss is
** rounded down to score steps; rounding lengthens the interval by at most one step. */

#define LEAF_DRAW_SHARE 30

/* What the draw depends on, apart from the rows. */
struct leaf_draw {
  const struct contribution *question;
  const struct layout *shape;
  double q;
  int replace; /* neighbours differ by the replacement of a unit */
};

/* The mechanism 'exponential' of quantiles. */
extern const struct mechanism leaf_draw_mechanism;

/* Returns the number of leaves that hold a value. With a grid, the last leaves may hold none. */
int leaf_draw_candidates(const struct leaf_draw *draw);

/* Returns the length of the interval of the changes, in score steps. It is below 2^20. */
uint64_t leaf_draw_range(const struct leaf_draw *draw);

/* Sets utility[i] to minus the loss of leaf i, in score steps. totals[i] are the rows of leaf i. */
void leaf_draw_utility(const struct leaf_draw *draw, const int64_t *totals, int64_t *utility);

/* Returns the number of score steps of one row. */
double leaf_draw_row(const struct leaf_draw *draw);

/* Return numbers of rows that the error in rank, the loss of the leaf, exceeds with probability 1 -
** confidence at most: for rows that lie evenly and close to each other, and for any rows. */
double leaf_draw_even_error(const struct leaf_draw *draw, double epsilon, double confidence);
double leaf_draw_most_error(const struct leaf_draw *draw, double epsilon, double confidence);

/* Returns the value in the middle of a leaf: of its grid values, or of its part of the range. */
double leaf_draw_value(const struct contribution *question, int leaf);

#endif
