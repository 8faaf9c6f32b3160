/* categorical.c: draws one of many categories. Tests: tests/noise/test_categorical.c */
#include "noise/noise.h"

#include "noise/exact_events.h"

#define FARTHEST ((uint64_t)1 << 50)

/* Trials for each category: all fail with a probability of at most exp(-32). */
#define TRIALS 32

static int64_t highest_of(const int64_t *utility, size_t count) {
  int64_t highest = INT64_MIN;
  for (size_t i = 0; i < count; i++) highest = utility[i] > highest ? utility[i] : highest;
  return highest;
}

/* Returns 1 with probability exp(-exponent (highest - utility) / 2^CATEGORICAL_SHIFT). */
static int accepts(struct csprng *random, int64_t highest, int64_t utility, uint64_t exponent) {
  uint64_t gap = (uint64_t)highest - (uint64_t)utility;
  if (gap > FARTHEST) gap = FARTHEST;
  return decays(random, (uint128)gap * exponent, (uint64_t)1 << CATEGORICAL_SHIFT);
}

/* Rejection sampling: each trial draws a uniform category and accepts it with probability
** exp(-exponent (highest - utility)). If the loop ended at the first acceptance, the number of
** trials would reveal something about the utilities. So it makes TRIALS * count trials, more only
** if none was accepted, and keeps the first accepted category. */
int categorical_exponential(const int64_t *utility, size_t count, uint64_t exponent,
                            size_t *chosen) {
  struct csprng random;
  int found = 0;
  *chosen = 0;
  if (count < 1 || exponent >= (uint64_t)1 << 53 || !csprng_start(&random)) return 0;
  int64_t highest = highest_of(utility, count);
  for (uint64_t trial = 0; trial < TRIALS * count || !found; trial++) {
    size_t i = (size_t)below(&random, count);
    int taken = accepts(&random, highest, utility[i], exponent);
    if (taken && !found) *chosen = i;
    found |= taken;
  }
  csprng_end(&random);
  return 1;
}

/* The index with the highest utility is always accepted. The loop tries all indices: ending at the
** first acceptance would reveal something about the utilities. */
int categorical_flip(const int64_t *utility, uint32_t *order, size_t count, uint64_t exponent,
                     size_t *chosen) {
  struct csprng random;
  int found = 0;
  *chosen = 0;
  if (count < 1 || count >> 32 || exponent >= (uint64_t)1 << 53 || !csprng_start(&random)) return 0;
  int64_t highest = highest_of(utility, count);
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = 0; i < count; i++) { /* a step of Fisher and Yates's shuffle, and a trial */
    size_t other = i + (size_t)below(&random, count - i);
    uint32_t next = order[other];
    order[other] = order[i];
    int taken = accepts(&random, highest, utility[next], exponent);
    if (taken && !found) *chosen = next;
    found |= taken;
  }
  csprng_end(&random);
  return 1;
}

int categorical_weighted(const uint64_t *weight, size_t count, size_t *chosen) {
  struct csprng random;
  uint128 sum = 0;
  *chosen = 0;
  for (size_t i = 0; i < count; i++) sum += weight[i];
  if (sum < 1 || sum >> 63 || !csprng_start(&random)) return 0;
  uint64_t place = below(&random, (uint64_t)sum);
  while (place >= weight[*chosen]) place -= weight[(*chosen)++];
  csprng_end(&random);
  return 1;
}
