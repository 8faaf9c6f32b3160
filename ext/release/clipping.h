/*
** clipping.h: what clipping did to the units of a release (the option diagnose). The functions read
** two noisy counts that are published already, so they are post-processing.
*/
#ifndef DIFFUSE_RELEASE_CLIPPING_H
#define DIFFUSE_RELEASE_CLIPPING_H

#include "ledger/ledger.h"
#include "mechanism/noise_law.h"

/* The share of units that were clipped, in [0, 1], and its 95% interval. */
struct clipped_share {
  double share; /* NaN if the noisy number of all units is not above 0 */
  double low, high;
};

/*
** Returns the share. If s is the true share, the number clipped (1 - s) - unclipped s consists of
** noise alone. The interval holds every share s for which this number is small enough to be noise
** (Fieller 1954). The denominator is the noisy sum of the two counts, never an exact number.
*/
struct clipped_share clipping_share(const struct noise_law *noise,
                                    const struct ledger_clipping *clipping);

/* The words for the sentence about the units of a release. */
struct clipping_words {
  const char *unit; /* the ledger's name for a unit; null: "unit" */
  int by_unit;      /* 0: the ledger protects rows */
  int has_range;    /* the kind has bounds lo and hi */
};

/* Returns the sentence. The caller calls sqlite3_free(). Returns null if memory runs out. */
char *clipping_sentence(const struct clipped_share *share, const struct clipping_words *words);

#endif
