/* numbers.h: the numbers that a point makes. */
#ifndef DIFFUSE_RELEASE_NUMBERS_H
#define DIFFUSE_RELEASE_NUMBERS_H

#include "mechanism/estimate.h"
#include "release/publication.h"

/* The numbers of a point; the estimates are to be freed with sqlite3_free(). */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink;
  char *const *keys; /* of its cells; null where there are none */
};

/* Reads a point; `delta` is what selects private keys there. */
int numbers_read(const struct publication *publication, double delta, const int64_t *values,
                 struct numbers *numbers);

/* One of the numbers as the ledger stores it. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/* Whether there is one number for each of some public groups, and numbers add up. */
int numbers_have_public_sums(const struct publication *publication);

/* The first group that has no row in the kernel, or null. */
const char *numbers_missing_group(const struct publication *publication,
                                  const struct markov_kernel *channel);

/* The groups as the kernel sends them on: sums with its probabilities as weights. */
int numbers_send(const struct publication *publication, const struct markov_kernel *channel,
                 struct numbers *numbers);

/*
** Whether its kernel can send its groups on: there are public ones, that add up, and the
** channel has a row for each. 0 with the reason in the ledger.
*/
int numbers_mixable(const struct publication *publication);

/* Private keys: a key is published at this position if its noisy count is at least this number. */
double numbers_threshold(const struct publication *publication);

/* estimate_total_stddev() at clock. */
double numbers_stddev(const struct publication *publication);

#endif
