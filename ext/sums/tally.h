/* tally.h: what clipping did to the units of a release (the option diagnose): how many were
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
**
** If the ledger protects households, too (households.h), what the units of one of them add to the
** ladder and the counts is bounded together, as their sums are: the vector of all these coordinates
** is at most `shared` long. And each household adds w to one of two further counts: of those whose
** sums were moved to what a household may count, and of the others. A unit alone is a household. */
#ifndef DIFFUSE_SUMS_TALLY_H
#define DIFFUSE_SUMS_TALLY_H

#include <stdint.h>

#include "noise/lattice.h"
#include "sums/partitioned_sums.h"

#define TALLY_RUNGS  11
#define TALLY_COUNTS 2 /* clipped and whole */
#define TALLY_OWN    (TALLY_RUNGS + TALLY_COUNTS)

struct ladder {
  int64_t steps;  /* w */
  double most;    /* in fine steps; 0: only the units are counted */
  int64_t shared; /* the bound on a household; 0: none is protected, or nothing is diagnosed */
};

/* The units, or the rows that are units, and the steps at each rung of the ladder. */
struct tally {
  int64_t clipped, whole;
  int128 rungs[TALLY_RUNGS];
  int64_t households_clipped, households_whole;
  int128 shared[TALLY_OWN]; /* the bounded sums of households: steps at each rung and count */
};

/* Adds a unit. `before` and `after` are not negative. */
void tally_add(struct tally *tally, const struct ladder *ladder, int clipped, double before,
               double after);

/* Adds the units of another tally. */
void tally_join(struct tally *tally, const struct tally *others);

/* tally_share() adds a unit to the sums of its household, records of one value. tally_bound() then
** bounds the sums of all households, and counts these. Both return 0 if memory has run out. */
int tally_share(struct partitioned_sums *shared, int64_t household, const struct ladder *ladder,
                int clipped, double before, double after);
int tally_bound(struct tally *tally, struct partitioned_sums *shared, const struct ladder *ladder);

/* Writes the steps of a release with this number of coordinates of diagnose (layout.h). */
void tally_write(const struct tally *tally, const struct ladder *ladder, int coordinates,
                 int128 *totals);

#endif
