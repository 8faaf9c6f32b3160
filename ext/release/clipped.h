/* clipped.h: what the noisy counts of the option diagnose say (sums/layout.h): which share of the
** units was clipped, and which share of the total was cut off. The counts are published already, so
** this is post-processing. */
#ifndef DIFFUSE_RELEASE_CLIPPED_H
#define DIFFUSE_RELEASE_CLIPPED_H

#include "ledger/ledger.h"
#include "mechanism/mechanism.h"

/* A share in [0, 1], and its interval. `share` is NaN if every share is possible. */
struct clipped_share {
  double share, low, high;
};

/* Returns the share of units that were clipped, with its 95% interval. If s is the true share, the
** number clipped (1 - s) - unclipped s consists of noise alone. The interval holds every share s
** for which this number is small enough to be noise (Fieller 1954). The denominator is the noisy
** sum of the two counts, never an exact number. */
struct clipped_share clipped_units(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping);

/* Returns the same of wider units. If none were counted, the share is NaN. */
struct clipped_share clipped_wider(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping);

/* Sets the share of the total that was cut off, with its 95% interval, in the same way from the
** noisy counts of the ladder's rungs. They have the noise clipping->stddev.
**
** No noisy number can exclude that few units are very large, and the noise of a rung weighs as much
** as its size. So the highest rung J whose count noise alone reaches with probability 1e-3 at most
** decides. Rungs up to J give the lower end: leaving out higher rungs can only lower the share.
** Rungs up to J + 1 give the share and the upper end, which holds if no unit is larger than that
** rung. Because the counts choose J, each end is computed for 97.5% in place of 95%: three such
** ends can fail together (that for the rung below or at the largest unit, and for one more). */
void clipped_amount(const struct noise_law *noise, const double *rungs,
                    struct ledger_clipping *clipping);

#endif
