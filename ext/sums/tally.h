/*
** tally.h: what clipping did to the units of a release (the option diagnose): how many were
** clipped, and how much was cut off.
**
** Every unit adds w steps to one of two counts. If the release is a total, a unit also tells how
** large it was. Let `before` and `after` be the sums of the magnitudes of its numbers before and
** after clipping, and `most` the largest possible `after`. The unit adds the part
** p = w after / most to a ladder of sizes 1, 2, 4, ... 2^(TALLY_RUNGS - 1), at the place
** r = before / after. A place between two rungs is divided between them as r lies between them. So
** if N_i is the sum of all units at rung i, then
**
**   sum of N_i 2^i        is w / most times the total before clipping,
**   sum of N_i (2^i - 1)  is w / most times what was cut off,
**
** whatever the sizes between the rungs are. A unit beyond the last rung counts as if it were there.
** The parts of a unit are not negative and add up to at most w, so in either norm a unit adds at
** most w to the ladder, and replacing it moves the ladder by at most w sqrt(2), or 2 w in the sum
** norm.
*/
#ifndef DIFFUSE_SUMS_TALLY_H
#define DIFFUSE_SUMS_TALLY_H

#include <stdint.h>

#include "noise/lattice.h"

#define TALLY_RUNGS 11

struct ladder {
  int64_t steps; /* w */
  double most;   /* in fine steps; 0: only the units are counted */
};

/* The units, or the rows that are units, and the steps at each rung of the ladder. */
struct tally {
  int64_t clipped, whole;
  int128 rungs[TALLY_RUNGS];
};

/* Adds a unit. `before` and `after` are not negative. */
void tally_add(struct tally *tally, const struct ladder *ladder, int clipped, double before,
               double after);

/* Adds the units of another tally. */
void tally_join(struct tally *tally, const struct tally *others);

#endif
