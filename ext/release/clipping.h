/*
** clipping.h: what clipping did to the units of a release (the option diagnose). The functions read
** two noisy counts that are published already, so they are post-processing.
*/
#ifndef DIFFUSE_RELEASE_CLIPPING_H
#define DIFFUSE_RELEASE_CLIPPING_H

#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "release/kinds.h"

/* The share of units that were clipped, in [0, 1], and its 95% interval. */
struct clipped_share {
  double share; /* NaN if every share is possible: there are too few units */
  double low, high;
};

/*
** Returns the share. If s is the true share, the number clipped (1 - s) - unclipped s consists of
** noise alone. The interval holds every share s for which this number is small enough to be noise
** (Fieller 1954). The denominator is the noisy sum of the two counts, never an exact number.
*/
struct clipped_share clipping_share(const struct noise_law *noise,
                                    const struct ledger_clipping *clipping);

/* What the sentence about the units of a release depends on. */
struct clipping_words {
  const char *unit; /* the ledger's name for a unit; null: "unit" */
  int by_unit;      /* 0: the ledger protects rows */
  const struct aggregate *aggregate;
  double clip;
  int keys_are_private;
  int is_series; /* clip is for all periods together, and nothing counts values outside lo and hi */
};

/*
** Returns what follows the share in the sentence, for example "of patients were cut down to the
** bound, because their total was beyond clip: a larger clip would lower the bias". If the share is
** NaN, returns the whole sentence. The caller calls sqlite3_free(). Returns null if memory runs
** out.
*/
char *clipping_words(const struct clipped_share *share, const struct clipping_words *words);

/*
** Returns the sentence, with the interval of the share if the sentence has no advice. The caller
** calls sqlite3_free(). Returns null if memory runs out.
*/
char *clipping_sentence(const struct clipped_share *share, const struct clipping_words *words);

/* Returns a share in percent, as the sentence gives it. */
int clipping_percent(double share);

#endif
