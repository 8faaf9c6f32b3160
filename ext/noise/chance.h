/*
** chance.h: what all exact samplers are made of: random bits, uniform integers, events of rational
** and of exponential probability. Integers only; nothing is rounded or truncated.
**
** A failure of the system's generator sticks: from then on all bits are zero and `failed` ends every
** loop. Callers give zeros and -1 then, never a value drawn from such bits. Random bits live in the
** caller's frame and are wiped as they are used (chance_close() wipes the rest), so neither a fork nor a
** later read of memory can find bits that were or will be noise.
*/
#ifndef DIFFUSE_NOISE_CHANCE_H
#define DIFFUSE_NOISE_CHANCE_H

#include <stddef.h>
#include <stdint.h>

#include "noise/entropy.h"
#include "noise/lattice.h" /* uint128 */

#define BUFFER_WORDS 64 /* random words asked of the system at a time */

/* ---- random bits ----------------------------------------------------------------------------- */

struct bits {
  uint64_t words[BUFFER_WORDS]; /* random, from `next` on; zero before */
  unsigned next;                /* first unused word */
  uint64_t reservoir;           /* the last word taken, shifted down by what was used of it */
  unsigned left;                /* bits left in the reservoir, 0..63 */
  int failed;                   /* the system had no random bytes: sticks */
};

static inline uint64_t next_word(struct bits *bits) {
  if (bits->next == BUFFER_WORDS) {
    if (bits->failed || entropy_fill(bits->words, sizeof bits->words)) {
      bits->failed = 1;
      return 0;
    }
    bits->next = 0;
  }
  uint64_t word = bits->words[bits->next];
  bits->words[bits->next++] = 0;
  return word;
}

/* Random bits that nobody has seen; and their end, which wipes them: -1 where they failed, otherwise 0. */
static inline struct bits chance_open(void) {
  return (struct bits){.next = BUFFER_WORDS};
}

static inline int chance_close(struct bits *bits) {
  int failed = bits->failed;
  entropy_wipe(bits, sizeof *bits);
  return failed ? -1 : 0;
}

/* `width` fresh random bits, 0 <= width <= 63: none is used twice, none is left over. */
static inline uint64_t take(struct bits *bits, unsigned width) {
  uint64_t value = bits->reservoir;
  if (bits->left >= width) {
    bits->reservoir >>= width;
    bits->left -= width;
  } else {
    uint64_t word = next_word(bits);
    unsigned used = width - bits->left; /* 1..63 */
    value |= word << bits->left;
    bits->reservoir = word >> used;
    bits->left = 64 - used;
  }
  return value & (((uint64_t)1 << width) - 1);
}

/* Number of binary digits of x: 0 for 0. */
static inline unsigned bit_length(uint64_t x) {
  return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
}

/*
** Uniform on 0 .. n-1, 1 <= n < 2^63. The values of `width` bits are equally likely; refusing those
** from n on leaves the others equally likely. More than half are kept, so it takes fewer than two
** tries on average. After a failure take() gives 0 < n, and the loop ends.
*/
static inline uint64_t below(struct bits *bits, uint64_t n) {
  unsigned width = bit_length(n - 1);
  uint64_t value;
  do {
    value = take(bits, width);
  } while (value >= n);
  return value;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The probability (whole + rest/parts)/base, at most 1. whole <= base; rest < parts. */
struct chance {
  uint64_t whole, rest, parts, base;
};

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
*/
static inline int bernoulli(struct bits *bits, const struct chance *chances, int count,
                            uint64_t divisor) {
  uint64_t k = 1;
  while (!bits->failed && below(bits, divisor * k) == 0 && all_happen(bits, chances, count)) k++;
  return !bits->failed && (k & 1);
}

/* ---- geometric distributions ------------------------------------------------------------------- */

/* u on 0 .. t-1 with P(u) proportional to exp(-u/t): keeps 1 - 1/e of all, 1.6 tries. */
static inline uint64_t laplace_remainder(struct bits *bits, uint64_t t) {
  struct chance ratio = {0, 0, 1, t};
  do {
    ratio.whole = below(bits, t);
  } while (!bernoulli(bits, &ratio, 1, 1) && !bits->failed);
  return ratio.whole;
}

/* v >= 0 with P(v) proportional to exp(-v): successes before the first failure, 0.6 on average. */
static inline uint64_t laplace_quotient(struct bits *bits) {
  uint64_t v = 0;
  while (bernoulli(bits, NULL, 0, 1)) v++;
  return v;
}

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

/*
** P(y) proportional to exp(-|y|/t): |y| = u + t*v and a sign. Zero would come with two signs and
** count twice; the negative one is refused. |y| < 2^62 unless v reaches 2^31, whose probability is
** below 2^-(10^9).
*/
static inline struct proposal laplace(struct bits *bits, uint64_t t) {
  struct proposal y;
  do {
    y.magnitude = laplace_remainder(bits, t);
    y.magnitude += t * laplace_quotient(bits);
    y.negative = (int)take(bits, 1);
  } while (y.negative && y.magnitude == 0 && !bits->failed);
  return y;
}

/* n/(base*parts) with the least number of parts that makes it less than 1. */
static inline struct chance part_of(uint128 n, uint64_t base) {
  if (n < base) return (struct chance){(uint64_t)n, 0, 1, base};
  uint64_t parts = (uint64_t)(n / base) + 1;
  return (struct chance){(uint64_t)(n / parts), (uint64_t)(n % parts), parts, base};
}

/* An event of probability exp(-n/base), n below 2^63 base: as many events as n/base has parts, all of which
** must happen; the first that does not ends it. */
static inline int decays(struct bits *bits, uint128 n, uint64_t base) {
  struct chance part = part_of(n, base);
  uint64_t events = part.parts;
  while (events > 0 && bernoulli(bits, &part, 1, 1)) events--;
  return events == 0;
}

#endif
