/*
** exact_bernoulli.h: random events whose probabilities are exact. All samplers are built from them.
**
**   below()      a uniform integer below n
**   happens()    an event of rational probability
**   bernoulli()  an event of probability exp(-gamma), gamma <= 1 a product of rationals
**
** Each function realises its probability exactly: nothing is rounded or truncated.
*/
#ifndef DIFFUSE_NOISE_EXACT_BERNOULLI_H
#define DIFFUSE_NOISE_EXACT_BERNOULLI_H

#include "noise/csprng.h"
#include "noise/lattice.h" /* uint128 */

/* Number of binary digits of x: 0 for 0. */
static inline unsigned bit_length(uint64_t x) {
  return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
}

/* The largest integer whose square is at most x, one binary digit at a time from the top. */
static inline uint64_t isqrt(uint64_t x) {
  uint64_t root = 0;
  for (uint64_t digit = (uint64_t)1 << 31; digit > 0; digit >>= 1) {
    if ((root | digit) * (root | digit) <= x) root |= digit;
  }
  return root;
}

/*
** Uniform on 0 .. n-1, 1 <= n < 2^63, by rejection: all values of `width` bits are equally likely,
** so those below n are too. At least half of the values are below n, so the loop runs fewer than
** two times on average.
*/
static inline uint64_t below(struct csprng *random, uint64_t n) {
  unsigned width = bit_length(n - 1);
  uint64_t value;
  do {
    value = csprng_take(random, width);
  } while (value >= n);
  return value;
}

/* The probability (whole + rest/parts)/base, at most 1. whole <= base; rest < parts. */
struct chance {
  uint64_t whole, rest, parts, base;
};

/* n/(base*parts), at most 1. */
static inline struct chance chance_of(uint128 n, uint64_t base, uint64_t parts) {
  return (struct chance){(uint64_t)(n / parts), (uint64_t)(n % parts), parts, base};
}

/*
** An event of that probability. It compares a uniform integer below base*parts, which can have 140
** bits, with whole*parts + rest. The quotient and the remainder by `parts` are drawn separately, so
** that 64 bits are enough. The remainder matters only when the quotients are equal.
*/
static inline int happens(struct csprng *random, const struct chance *chance) {
  uint64_t quotient = below(random, chance->base);
  if (quotient != chance->whole) return quotient < chance->whole;
  return below(random, chance->parts) < chance->rest;
}

static inline int all_happen(struct csprng *random, const struct chance *chances, int count) {
  for (int i = 0; i < count; i++) {
    if (!happens(random, &chances[i])) return 0;
  }
  return 1;
}

/*
** An event of probability exp(-gamma), where gamma <= 1 is the product of the `count` chances
** divided by `divisor`. The product of no chances is 1.
**
** Attempt k succeeds with probability gamma/k, so the first k attempts all succeed with probability
** gamma^k/k!. The first failure is at an odd k with probability 1 - gamma + gamma^2/2! - ..., which
** is exp(-gamma) (Canonne, Kamath and Steinke 2020, Algorithm 1). The loop makes exp(gamma) < 3
** attempts on average and draws the cheapest event first.
**
** k is 1, or larger if the caller has already made the attempts before k and all succeeded.
*/
static inline int bernoulli_from(struct csprng *random, uint64_t k, const struct chance *chances,
                                 int count, uint64_t divisor) {
  while (below(random, divisor * k) == 0 && all_happen(random, chances, count)) k++;
  return k & 1;
}

static inline int bernoulli(struct csprng *random, const struct chance *chances, int count,
                            uint64_t divisor) {
  return bernoulli_from(random, 1, chances, count, divisor);
}

#endif
