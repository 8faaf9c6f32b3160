/* numbers.h: computes the published numbers from a point. */
#ifndef DIFFUSE_RELEASE_NUMBERS_H
#define DIFFUSE_RELEASE_NUMBERS_H

#include "mechanism/estimate.h"
#include "release/publication.h"

#define NUMBERS_CONFIDENCE 0.95 /* of the intervals that are published and planned */

/* The published numbers of a point. */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink, confidence;
  char *const *keys; /* the keys of the cells; null if there are no keys */
  char **sent;       /* the keys, if a kernel made the numbers: one allocation; owned */
};

void numbers_clear(struct numbers *numbers);

/*
** Computes the published numbers of a point, with intervals of this confidence. The selection of
** private keys uses `delta`. Returns 1, or 0 after setting the ledger's error.
*/
int numbers_read(const struct publication *publication, double delta, double confidence,
                 const int64_t *values, struct numbers *numbers);

/*
** Returns the noisy numbers of units that were clipped and that were not, from the last coordinates
** of a point. The numbers are NaN without the option diagnose.
*/
struct ledger_clipping numbers_clipping(const struct publication *publication,
                                        const int64_t *values);

/* Converts one of the numbers to the form that the ledger stores. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/*
** Returns the part of the tier's delta_keys that the selection of private keys may use. Each
** publication of the release uses this part anew.
*/
double numbers_selection_delta(const struct publication *publication);

/*
** Returns the threshold of the publication's tier. A private key is published there if its noisy
** count is at least the threshold. A bin of bounds shows rows if its noisy count is above the
** threshold.
*/
double numbers_threshold(const struct publication *publication);

/* Returns estimate_total_stddev() (mechanism/estimate.h) at the clock of the publication's tier. */
double numbers_stddev(const struct publication *publication);

/* Returns estimate_half_width() (mechanism/estimate.h) at the clock of the publication's tier. */
double numbers_half_width(const struct publication *publication, double rows);

#endif
