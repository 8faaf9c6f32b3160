/* exact_events.h: random events and integers whose probabilities are exact. All samplers consist of
** them. The functions round and truncate nothing.
**
**   below()      a uniform integer below n; below_wide() for n of up to 126 bits
**   happens()    an event of rational probability
**   bernoulli()  an event of probability exp(-gamma), gamma <= 1 a product of rationals
**   laplace()    P(y) proportional to exp(-|y|/t)
**   decays()     an event of probability exp(-n/base), for any exponent */
#ifndef DIFFUSE_NOISE_EXACT_EVENTS_H
#define DIFFUSE_NOISE_EXACT_EVENTS_H

#include <stddef.h>

#include "noise/csprng.h"
#include "noise/entropy.h"
#include "noise/lattice.h" /* uint128 */

/* The number of binary digits of x, which is 0 for x = 0. */
static inline unsigned bit_length(uint64_t x) {
  return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
}

/* The largest integer whose square is at most x, one binary digit at a time. */
static inline uint64_t isqrt(uint64_t x) {
  uint64_t root = 0;
  for (uint64_t digit = (uint64_t)1 << 31; digit > 0; digit >>= 1) {
    if ((root | digit) * (root | digit) <= x) root |= digit;
  }
  return root;
}

/* Returns a uniform integer in 0 .. n-1, for 1 <= n <= 2^63, by rejection: of as many bits as n - 1
** has, all values are equally likely, and more than half of them are below n, so the loop runs
** fewer than two times on average. */
static inline uint64_t below(struct csprng *random, uint64_t n) {
  unsigned width = bit_length(n - 1);
  uint64_t value;
  do {
    value = csprng_take(random, width);
  } while (value >= n);
  return value;
}

/* The same for 1 <= n < 2^126. */
static inline uint128 below_wide(struct csprng *random, uint128 n) {
  uint64_t high = (uint64_t)((n - 1) >> 63);
  if (high == 0) return below(random, (uint64_t)n);
  unsigned width = bit_length(high);
  uint128 value;
  do {
    value = (uint128)csprng_take(random, width) << 63;
    value |= csprng_take(random, 63);
  } while (value >= n);
  return value;
}

/* The probability (whole + rest/parts)/base, at most 1. whole <= base; rest < parts. */
struct chance {
  uint64_t whole, rest, parts, base;
};

/* The chance n/(base*parts), which must be at most 1. */
static inline struct chance chance_of(uint128 n, uint64_t base, uint64_t parts) {
  return (struct chance){(uint64_t)(n / parts), (uint64_t)(n % parts), parts, base};
}

/* Returns 1 with the probability `chance`, otherwise 0: if a uniform integer U below base*parts is
** less than whole*parts + rest. U can need more than 64 bits, so the quotient and the remainder of
** U divided by `parts` are drawn separately, the remainder only if the quotient is `whole`. */
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

/* Returns 1 with probability exp(-gamma), otherwise 0. gamma <= 1 is the product of `count` chances
** (1 for none), divided by `divisor`.
**
** The function makes attempts until one fails. Attempt k succeeds with probability gamma/k, so the
** first k attempts all succeed with probability gamma^k/k!. The number of the failed attempt is odd
** with probability 1 - gamma + gamma^2/2! - ..., which is exp(-gamma) (Canonne, Kamath and Steinke
** 2020, Algorithm 1). The loop makes exp(gamma) < 3 attempts on average. The event of probability
** 1/(divisor * k) of an attempt comes first, because it needs the fewest random bits. A caller
** passes k > 1 if the attempts before k have already succeeded. */
static inline int bernoulli_from(struct csprng *random, uint64_t k, const struct chance *chances,
                                 int count, uint64_t divisor) {
  while (below(random, divisor * k) == 0 && all_happen(random, chances, count)) k++;
  return k & 1;
}

static inline int bernoulli(struct csprng *random, const struct chance *chances, int count,
                            uint64_t divisor) {
  return bernoulli_from(random, 1, chances, count, divisor);
}

/* ---- geometric and Laplace distributions ----------------------------------------------------- */

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

/* Returns a random u in 0 .. t-1 with P(u) proportional to exp(-u/t), by rejection: at most 1.6
** tries on average. */
static inline uint64_t laplace_remainder(struct csprng *random, uint64_t t) {
  struct chance ratio = {0, 0, 1, t};
  do {
    ratio.whole = below(random, t);
  } while (!bernoulli(random, &ratio, 1, 1));
  return ratio.whole;
}

/* Returns a random v >= 0 with P(v) proportional to exp(-v): the successes of probability exp(-1)
** before the first failure. */
static inline uint64_t laplace_quotient(struct csprng *random) {
  uint64_t v = 0;
  while (bernoulli(random, NULL, 0, 1)) v++;
  return v;
}

/* Returns a random k >= 0 with P(k) proportional to exp(-k n/d), or 2^62 if k is larger: a
** geometric variable of scale d, divided by n and rounded down. */
static inline uint64_t geometric(struct csprng *random, uint64_t n, uint64_t d) {
  uint128 remainder = laplace_remainder(random, d);
  uint128 k = (remainder + (uint128)d * laplace_quotient(random)) / n;
  return k >> 62 ? (uint64_t)1 << 62 : (uint64_t)k;
}

/* Returns a random y with P(y) proportional to exp(-|y|/t): u + t*v with a random sign, where u is
** laplace_remainder() and v is laplace_quotient(). A zero with negative sign is rejected, because
** zero would otherwise be twice as likely as it should be. |y| is below 2^62 unless v reaches 2^31,
** which has a probability below 2^-(10^9). */
static inline struct proposal laplace(struct csprng *random, uint64_t t) {
  struct proposal y;
  do {
    y.magnitude = laplace_remainder(random, t);
    y.magnitude += t * laplace_quotient(random);
    y.negative = (int)csprng_take(random, 1);
  } while (y.negative && y.magnitude == 0);
  return y;
}

/* The chance n/(base*parts), with the smallest number of parts for which it is less than 1. */
static inline struct chance part_of(uint128 n, uint64_t base) {
  return n < base ? (struct chance){(uint64_t)n, 0, 1, base}
                  : chance_of(n, base, (uint64_t)(n / base) + 1);
}

/* Returns 1 with probability exp(-n/base), otherwise 0. n < 2^63 base. The exponent is divided into
** equal parts below 1: an event of probability exp(-part) must happen for each part. */
static inline int decays(struct csprng *random, uint128 n, uint64_t base) {
  struct chance part = part_of(n, base);
  uint64_t events = part.parts;
  while (events > 0 && bernoulli(random, &part, 1, 1)) events--;
  return events == 0;
}

/* ---- hiding the time of a draw --------------------------------------------------------------- */

#define HIDDEN_DRAWS 32

/* Returns one of HIDDEN_DRAWS draws. Its index is chosen before and does not depend on the draws,
** so the result has the distribution of a single draw. All draws are complete before one is
** used. */
static inline int64_t hidden_draw(struct csprng *random,
                                  int64_t (*draw)(struct csprng *random, const void *law),
                                  const void *law) {
  int64_t draws[HIDDEN_DRAWS];
  uint64_t chosen = below(random, HIDDEN_DRAWS);
  for (int i = 0; i < HIDDEN_DRAWS; i++) draws[i] = draw(random, law);
  int64_t value = draws[chosen];
  entropy_wipe(draws, sizeof draws);
  return value;
}

#endif
