/* symbol.c: see symbol.h. */
#include "noise/symbol.h"

#include "noise/geometric.h"

#define FARTHEST ((uint64_t)1 << 50)

/* Trials for each symbol: one at least is taken but for a probability of exp(-32). */
#define TRIALS 32

/*
** Rejection: a uniform symbol is taken with probability exp(-exponent (highest - utility)). How
** many trials that takes would tell how the data is spread; so there is always the same number of
** them, of which the first that is taken counts.
*/
int symbol_exponential(const int64_t *utility, size_t count, uint64_t exponent, size_t *chosen) {
  struct bits bits;
  int64_t highest = INT64_MIN;
  int found = 0;
  *chosen = 0;
  if (count < 1 || exponent >= (uint64_t)1 << 53 || bits_start(&bits)) return -1;
  for (size_t i = 0; i < count; i++) highest = utility[i] > highest ? utility[i] : highest;
  for (uint64_t trial = 0; trial < TRIALS * count || !found; trial++) {
    size_t i = (size_t)below(&bits, count);
    uint64_t gap = (uint64_t)highest - (uint64_t)utility[i];
    if (gap > FARTHEST) gap = FARTHEST;
    int taken = decays(&bits, (uint128)gap * exponent, (uint64_t)1 << SYMBOL_SHIFT);
    if (taken && !found) *chosen = i;
    found |= taken;
  }
  bits_end(&bits);
  return 0;
}

int symbol_weighted(const uint64_t *weight, size_t count, size_t *chosen) {
  struct bits bits;
  uint128 sum = 0;
  *chosen = 0;
  for (size_t i = 0; i < count; i++) sum += weight[i];
  if (sum < 1 || sum >> 63 || bits_start(&bits)) return -1;
  uint64_t place = below(&bits, (uint64_t)sum);
  while (place >= weight[*chosen]) place -= weight[(*chosen)++];
  bits_end(&bits);
  return 0;
}
