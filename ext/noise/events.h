/*
** events.h: events of exact probability from random bits, the parts that samplers are made of.
**
**   below()      a uniform integer below n
**   happens()    an event of rational probability
**   bernoulli()  an event of probability exp(-gamma), gamma <= 1 a product of rationals
**
** Each is an identity between probabilities; nothing is rounded or truncated.
*/
#ifndef DIFFUSE_NOISE_EVENTS_H
#define DIFFUSE_NOISE_EVENTS_H

#include "noise/bits.h"
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
** Uniform on 0 .. n-1, 1 <= n < 2^63. The values of `width` bits are equally likely; refusing those
** from n on leaves the others equally likely. More than half are kept, so it takes fewer than two
** tries on average.
*/
static inline uint64_t below(struct bits *bits, uint64_t n) {
  unsigned width = bit_length(n - 1);
  uint64_t value;
  do {
    value = bits_take(bits, width);
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
** An event of that probability. One uniform integer below base*parts would have 140 bits; drawing
** its quotient and its remainder by `parts` separately keeps to 64, and the remainder is needed
** only where the quotient ties.
*/
static inline int happens(struct bits *bits, const struct chance *chance) {
  uint64_t quotient = below(bits, chance->base);
  if (quotient != chance->whole) return quotient < chance->whole;
  return below(bits, chance->parts) < chance->rest;
}

static inline int all_happen(struct bits *bits, const struct chance *chances, int count) {
  for (int i = 0; i < count; i++) {
    if (!happens(bits, &chances[i])) return 0;
  }
  return 1;
}

/*
** An event of probability exp(-gamma), where gamma = (product of the `count` chances)/divisor <= 1;
** the product of no chances is 1.
**
** Attempt k succeeds with probability gamma/k, so more than k attempts succeed with probability
** gamma^k/k!. The first failure is at an odd k with probability 1 - gamma + gamma^2/2! - ..., which
** is exp(-gamma). It takes exp(gamma) < 3 attempts on average. The cheapest event goes first.
** A caller who has made the attempts before the k-th, all successes, starts at k; else k is 1.
*/
static inline int bernoulli_from(struct bits *bits, uint64_t k, const struct chance *chances,
                                 int count, uint64_t divisor) {
  while (below(bits, divisor * k) == 0 && all_happen(bits, chances, count)) k++;
  return k & 1;
}

static inline int bernoulli(struct bits *bits, const struct chance *chances, int count,
                            uint64_t divisor) {
  return bernoulli_from(bits, 1, chances, count, divisor);
}

#endif
