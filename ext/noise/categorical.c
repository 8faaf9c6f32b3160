/* categorical.c: draws one of many categories. Tests: tests/noise/test_categorical.c */
#include "noise/noise.h"

#include "noise/exact_events.h"

#define FARTHEST ((uint64_t)1 << 50)

/*
** The number of trials for each category. With this number, the probability that all trials fail is
** at most exp(-32).
*/
#define TRIALS 32

/*
** Rejection sampling: each trial draws a uniform category and accepts this category with
** probability exp(-exponent (highest - utility)). If the loop ended at the first acceptance, the
** number of trials would reveal something about the utilities. The loop therefore always makes
** TRIALS * count trials and keeps the first accepted category. If no trial was accepted, the loop
** continues until one is.
*/
int categorical_exponential(const int64_t *utility, size_t count, uint64_t exponent,
                            size_t *chosen) {
  struct csprng random;
  int64_t highest = INT64_MIN;
  int found = 0;
  *chosen = 0;
  if (count < 1 || exponent >= (uint64_t)1 << 53 || !csprng_start(&random)) return 0;
  for (size_t i = 0; i < count; i++) highest = utility[i] > highest ? utility[i] : highest;
  for (uint64_t trial = 0; trial < TRIALS * count || !found; trial++) {
    size_t i = (size_t)below(&random, count);
    uint64_t gap = (uint64_t)highest - (uint64_t)utility[i];
    if (gap > FARTHEST) gap = FARTHEST;
    int taken = decays(&random, (uint128)gap * exponent, (uint64_t)1 << CATEGORICAL_SHIFT);
    if (taken && !found) *chosen = i;
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
