/* exact_events.h: the bits, events and integers of which all samplers consist. Their probabilities
** are exact; nothing is rounded or truncated. */
#ifndef DIFFUSE_NOISE_EXACT_EVENTS_H
#define DIFFUSE_NOISE_EXACT_EVENTS_H

#include <stdint.h>

#include "noise/noise.h" /* uint128 */

/* ---- random bits ----------------------------------------------------------------------------- */

/* A cryptographically secure generator of random bits for the exact samplers.
**
** The generator is the ChaCha20 keystream (RFC 8439) in libsodium's implementation, with a key of
** 256 bits from the operating system. The generator of the Linux kernel uses the same cipher, so on
** Linux the extension depends on no additional cipher. The samplers do not ask the operating system
** for each word, because a system call takes longer than the rest of a draw.
**
** 1. Every call of a sampler draws a fresh key and keeps the generator's state in its own stack
**    frame. The sampler wipes the state before it returns. A fork can therefore not duplicate the
**    state, and nobody can find it in memory later.
** 2. Fast key erasure: the first bytes of each block replace the key that made the block, and each
**    word is wiped when it is taken. The state reveals nothing about words taken earlier.
** 3. Only csprng_start() can fail. After it succeeds, a sampler gets all the bits that it asks for.
**
** Unit tests replace csprng.c at link time. There is no other way to replace it. */
#define CSPRNG_KEY   32  /* bytes of a key */
#define CSPRNG_WORDS 128 /* words of a block */

struct csprng {
  struct {
    unsigned char key[CSPRNG_KEY]; /* csprng_refill() makes the next block from this key */
    /* Words before `next` are used and zero, later words are random. */
    uint64_t words[CSPRNG_WORDS];
  } block;
  unsigned next;      /* index of the first unused word */
  unsigned left;      /* number of unused bits in the reservoir, 0..63 */
  uint64_t reservoir; /* unused bits of the last word that csprng_take() has taken */
};

/* Draws a key. Returns 0 if the system provides no random bytes; the generator is then unusable. */
int csprng_start(struct csprng *random);

/* Generates the next block. Only csprng_word() calls this function. */
void csprng_refill(struct csprng *random);

/* Overwrites the whole state with zeros. */
void csprng_end(struct csprng *random);

/* Returns 64 fresh random bits. */
static inline uint64_t csprng_word(struct csprng *random) {
  if (random->next == CSPRNG_WORDS) csprng_refill(random);
  uint64_t word = random->block.words[random->next];
  random->block.words[random->next++] = 0;
  return word;
}

/* Returns `width` <= 63 fresh random bits, and never returns a bit twice or skips one. */
static inline uint64_t csprng_take(struct csprng *random, unsigned width) {
  uint64_t value = random->reservoir;
  if (random->left >= width) {
    random->reservoir >>= width;
    random->left -= width;
  } else {
    uint64_t word = csprng_word(random);
    unsigned used = width - random->left; /* 1..63 */
    value |= word << random->left;
    random->reservoir = word >> used;
    random->left = 64 - used;
  }
  return value & (((uint64_t)1 << width) - 1);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The number of binary digits of x, which is 0 for x = 0. */
static inline unsigned bit_length(uint64_t x) {
  return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
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

/* Returns 1 with probability exp(-gamma), otherwise 0, for a chance gamma.
**
** The function makes attempts until one fails. Attempt k succeeds with probability gamma/k, so the
** first k attempts all succeed with probability gamma^k/k!. The number of the failed attempt is odd
** with probability 1 - gamma + gamma^2/2! - ..., which is exp(-gamma) (Canonne, Kamath and Steinke
** 2020, Algorithm 1). The loop makes exp(gamma) < 3 attempts on average. The event of probability
** 1/k of an attempt comes first, because it needs the fewest random bits. A caller passes k > 1 if
** the attempts before k have already succeeded. */
static inline int bernoulli_from(struct csprng *random, uint64_t k, const struct chance *gamma) {
  while (below(random, k) == 0 && happens(random, gamma)) k++;
  return k & 1;
}

static inline int bernoulli(struct csprng *random, const struct chance *gamma) {
  return bernoulli_from(random, 1, gamma);
}

/* Returns 1 with probability exp(-n/base), otherwise 0. n < 2^63 base. The exponent is divided into
** equal parts below 1: an event of probability exp(-part) must happen for each part. */
static inline int decays(struct csprng *random, uint128 n, uint64_t base) {
  uint64_t events = n < base ? 1 : (uint64_t)(n / base) + 1;
  struct chance part = chance_of(n, base, events);
  while (events > 0 && bernoulli(random, &part)) events--;
  return events == 0;
}

/* ---- geometric distributions ----------------------------------------------------------------- */

/* Returns a random u in 0 .. t-1 with P(u) proportional to exp(-u/t), by rejection: at most 1.6
** tries on average. */
static inline uint64_t laplace_remainder(struct csprng *random, uint64_t t) {
  struct chance ratio = {0, 0, 1, t};
  do {
    ratio.whole = below(random, t);
  } while (!bernoulli(random, &ratio));
  return ratio.whole;
}

/* Returns a random v >= 0 with P(v) proportional to exp(-v): the successes of probability exp(-1)
** before the first failure. */
static inline uint64_t laplace_quotient(struct csprng *random) {
  const struct chance certain = {1, 0, 1, 1};
  uint64_t v = 0;
  while (bernoulli(random, &certain)) v++;
  return v;
}

/* Returns a random k >= 0 with P(k) proportional to exp(-k n/d), or 2^62 if k is larger: a
** geometric variable of scale d, divided by n and rounded down. */
static inline uint64_t geometric(struct csprng *random, uint64_t n, uint64_t d) {
  uint128 remainder = laplace_remainder(random, d);
  uint128 k = (remainder + (uint128)d * laplace_quotient(random)) / n;
  return k >> 62 ? (uint64_t)1 << 62 : (uint64_t)k;
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
