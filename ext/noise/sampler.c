/*
** sampler.c: the exact discrete Gaussian of Canonne, Kamath and Steinke (2020), in integers.
**
** Algorithm 3 of the paper: propose y from a discrete Laplace of scale t, about sqrt(V), and accept
** it with probability exp(-(|y| - V/t)^2/(2V)). All that it needs is, from the bottom up,
**
**   take()       w random bits
**   below()      a uniform integer below n
**   happens()    an event of rational probability
**   bernoulli()  an event of probability exp(-gamma), gamma <= 1 a product of rationals
**   laplace()    P(y) proportional to exp(-|y|/t)
**   gaussian()   P(y) proportional to exp(-y^2/(2V))
**
** 1. Exact: each step is an identity between probabilities; nothing is rounded or truncated.
** 2. A failure of the system's generator sticks: from then on all bits are zero and `failed` ends
**    every loop. The caller gets zeros and -1, never a value drawn from such bits.
** 3. Random bits live in the caller's frame and are wiped as they are used. Nothing outlives the
**    call, so neither a fork nor a later read of memory can find bits that were or will be noise.
** 4. The time of a draw depends on its value. A coordinate of a short vector is one of BATCH draws,
**    chosen at random, so that the time is mostly that of the others.
**
** A draw uses about 4 words of 64 bits (V near 2^41): a fifth of a microsecond, system included.
*/
#include "noise/sampler.h"

#include <string.h>

#include "noise/entropy.h"
#include "noise/lattice.h" /* uint128 */

#define BUFFER_WORDS 64 /* random words asked of the system at a time */
#define BATCH        32 /* draws per coordinate of a vector shorter than this */

/* ---- random bits ----------------------------------------------------------------------------- */

struct bits {
  uint64_t words[BUFFER_WORDS]; /* random, from `next` on; zero before */
  unsigned next;                /* first unused word */
  uint64_t reservoir;           /* the last word taken, shifted down by what was used of it */
  unsigned left;                /* bits left in the reservoir, 0..63 */
  int failed;                   /* the system had no random bytes: sticks */
};

static uint64_t next_word(struct bits *bits) {
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

/* ---- distributions --------------------------------------------------------------------------- */

/* What all draws of one call share. */
struct gaussian {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
};

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

/* The largest integer whose square is at most x, one binary digit at a time from the top. */
static uint64_t isqrt(uint64_t x) {
  uint64_t root = 0;
  for (uint64_t digit = (uint64_t)1 << 31; digit > 0; digit >>= 1) {
    if ((root | digit) * (root | digit) <= x) root |= digit;
  }
  return root;
}

static struct gaussian gaussian_of(uint64_t variance) {
  uint64_t scale = isqrt(variance) + 1;
  return (struct gaussian){variance, scale, scale * scale};
}

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

/*
** Accepts y with probability exp(-(|y| - V/t)^2/(2V)) = exp(-n^2/(2 V t^2)), n = ||y| t - V|.
**
** Neither n^2 (140 bits) nor an exponent above 1 is ever formed: with m1 = floor(n/V) + 1 and
** m2 = floor(n/t^2) + 1 the exponent is m1 m2 times (n/(V m1)) (n/(t^2 m2))/2, so that many
** events of that exponent must all happen. n/V is about ||y|/t - 1|: 1 event up to |y| = 2t,
** then 4, 9, ...; the first that fails ends it. Three proposals of four are accepted.
*/
static inline int accept(struct bits *bits, const struct gaussian *law, uint64_t magnitude) {
  uint128 product = (uint128)magnitude * law->scale;
  uint128 n = product > law->variance ? product - law->variance : law->variance - product;
  struct chance factors[2] = {part_of(n, law->variance), part_of(n, law->square)};
  uint128 events = (uint128)factors[0].parts * factors[1].parts;
  while (events > 0 && bernoulli(bits, factors, 2, 2)) events--;
  return events == 0;
}

/* One draw: 1.3 proposals on average. */
static int64_t gaussian(struct bits *bits, const struct gaussian *law) {
  struct proposal y;
  do {
    y = laplace(bits, law->scale);
  } while (!accept(bits, law, y.magnitude) && !bits->failed);
  return y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/*
** One of BATCH draws. The index is drawn first and independently of them, so the choice has the law
** of a single draw; all of them are finished before it is used.
*/
static int64_t one_of_batch(struct bits *bits, const struct gaussian *law) {
  int64_t batch[BATCH];
  uint64_t chosen = below(bits, BATCH);
  for (int i = 0; i < BATCH; i++) batch[i] = gaussian(bits, law);
  int64_t value = batch[chosen];
  entropy_wipe(batch, sizeof batch);
  return value;
}

int sampler_gaussian(uint64_t variance, int64_t *noise, size_t count) {
  struct bits bits = {.next = BUFFER_WORDS};
  struct gaussian law = gaussian_of(variance);
  bits.failed = variance < 1 || variance >= SAMPLER_MAX_VARIANCE;
  for (size_t i = 0; i < count && !bits.failed; i++) {
    noise[i] = count < BATCH ? one_of_batch(&bits, &law) : gaussian(&bits, &law);
  }
  int failed = bits.failed;
  entropy_wipe(&bits, sizeof bits);
  if (failed) entropy_wipe(noise, count * sizeof *noise);
  return failed ? -1 : 0;
}
