/* numbers.h: from a point to the numbers that are published. */
#ifndef DIFFUSE_RELEASE_NUMBERS_H
#define DIFFUSE_RELEASE_NUMBERS_H

#include "mechanism/estimate.h"
#include "release/publication.h"

/* The numbers of a point. The caller frees the estimates with sqlite3_free(). */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink;
  char *const *keys; /* the keys of its cells; null if there are none */
};

/* Reads a point. The selection of private keys uses `delta` there. */
int numbers_read(const struct publication *publication, double delta, const int64_t *values,
                 struct numbers *numbers);

/* Converts one of the numbers to the form that the ledger stores. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/*
** Checks that the groups are public, that each has one number, and that the numbers can be added
** up.
*/
int numbers_have_public_sums(const struct publication *publication);

/* Returns the first group that has no row in the kernel, or null. */
const char *numbers_missing_group(const struct publication *publication,
                                  const struct markov_kernel *channel);

/*
** Applies the kernel to the groups: each new number is a sum of old ones, weighted with the
** kernel's probabilities.
*/
int numbers_send(const struct publication *publication, const struct markov_kernel *channel,
                 struct numbers *numbers);

/*
** Checks that the position's kernel can be applied to the groups: they are public, their numbers
** can be added up, and the kernel has a row for each. Returns 0 with the reason in the ledger.
*/
int numbers_mixable(const struct publication *publication);

/*
** For private keys: a key is published at this position if its noisy count is at least this number.
*/
double numbers_threshold(const struct publication *publication);

/* Returns estimate_total_stddev() at the position's clock. */
double numbers_stddev(const struct publication *publication);

#endif
