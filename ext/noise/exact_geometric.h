/*
** exact_geometric.h: exact exponential distributions on the integers, made from the events of
** exact_bernoulli.h.
**
**   laplace()  P(y) proportional to exp(-|y|/t)
**   decays()   an event of probability exp(-n/base), for any exponent
*/
#ifndef DIFFUSE_NOISE_EXACT_GEOMETRIC_H
#define DIFFUSE_NOISE_EXACT_GEOMETRIC_H

#include <stddef.h>

#include "noise/exact_bernoulli.h"

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

/*
** Returns a random u in 0 .. t-1 with P(u) proportional to exp(-u/t), by rejection. The loop makes
** at most 1.6 tries on average.
*/
static inline uint64_t laplace_remainder(struct csprng *random, uint64_t t) {
  struct chance ratio = {0, 0, 1, t};
  do {
    ratio.whole = below(random, t);
  } while (!bernoulli(random, &ratio, 1, 1));
  return ratio.whole;
}

/*
** Returns a random v >= 0 with P(v) proportional to exp(-v). v counts the successes before the
** first failure, where each success has probability exp(-1).
*/
static inline uint64_t laplace_quotient(struct csprng *random) {
  uint64_t v = 0;
  while (bernoulli(random, NULL, 0, 1)) v++;
  return v;
}

/*
** Returns a random k >= 0 with P(k) proportional to exp(-k n/d), or 2^62 if k is larger. The
** function draws a geometric variable of scale d, divides it by n and rounds down.
*/
static inline uint64_t geometric(struct csprng *random, uint64_t n, uint64_t d) {
  uint128 remainder = laplace_remainder(random, d);
  uint128 k = (remainder + (uint128)d * laplace_quotient(random)) / n;
  return k >> 62 ? (uint64_t)1 << 62 : (uint64_t)k;
}

/*
** Returns a random y with P(y) proportional to exp(-|y|/t). y is u + t*v with a random sign, where
** u is laplace_remainder() and v is laplace_quotient(). The function rejects a zero with negative
** sign, because zero would otherwise be twice as likely as it should be. |y| is below 2^62 unless v
** reaches 2^31, which has a probability below 2^-(10^9).
*/
static inline struct proposal laplace(struct csprng *random, uint64_t t) {
  struct proposal y;
  do {
    y.magnitude = laplace_remainder(random, t);
    y.magnitude += t * laplace_quotient(random);
    y.negative = (int)csprng_take(random, 1);
  } while (y.negative && y.magnitude == 0);
  return y;
}

/*
** Returns the chance n/(base*parts), with the smallest number of parts for which this chance is
** less than 1.
*/
static inline struct chance part_of(uint128 n, uint64_t base) {
  return n < base ? (struct chance){(uint64_t)n, 0, 1, base}
                  : chance_of(n, base, (uint64_t)(n / base) + 1);
}

/*
** Returns 1 with probability exp(-n/base), otherwise 0. n < 2^63 base. The function divides the
** exponent into equal parts below 1 and draws an event of probability exp(-part) for each part. It
** returns 1 if all these events happen.
*/
static inline int decays(struct csprng *random, uint128 n, uint64_t base) {
  struct chance part = part_of(n, base);
  uint64_t events = part.parts;
  while (events > 0 && bernoulli(random, &part, 1, 1)) events--;
  return events == 0;
}

#endif
