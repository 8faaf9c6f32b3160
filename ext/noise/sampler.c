/*
** sampler.c: the exact discrete Gaussian of Canonne, Kamath and Steinke (2020), in integers.
**
** Algorithm 3 of the paper: propose y from a discrete Laplace of scale t, about sqrt(V), and accept
** it with probability exp(-(|y| - V/t)^2/(2V)). What it is made of is in chance.h: each step is an
** identity between probabilities; nothing is rounded or truncated.
**
** The time of a draw depends on its value. A coordinate of a short vector is one of BATCH draws, chosen
** at random, so that the time is mostly that of the others.
**
** A draw uses about 4 words of 64 bits (V near 2^41): a fifth of a microsecond, system included.
*/
#include "noise/sampler.h"

#include <string.h>

#include "noise/chance.h"

#define BATCH 32 /* draws per coordinate of a vector shorter than this */

/* What all draws of one call share. */
struct gaussian {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
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
  struct bits bits = chance_open();
  struct gaussian law = gaussian_of(variance);
  bits.failed = variance < 1 || variance >= SAMPLER_MAX_VARIANCE;
  for (size_t i = 0; i < count && !bits.failed; i++) {
    noise[i] = count < BATCH ? one_of_batch(&bits, &law) : gaussian(&bits, &law);
  }
  int failed = chance_close(&bits);
  if (failed) entropy_wipe(noise, count * sizeof *noise);
  return failed ? -1 : 0;
}
