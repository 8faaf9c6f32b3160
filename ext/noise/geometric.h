/*
** geometric.h: exponential laws on the integers, exactly, from the events of events.h.
**
**   laplace()  P(y) proportional to exp(-|y|/t)
**   decays()   an event of probability exp(-n/base), for any exponent
*/
#ifndef DIFFUSE_NOISE_GEOMETRIC_H
#define DIFFUSE_NOISE_GEOMETRIC_H

#include <stddef.h>

#include "noise/events.h"

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

/* u on 0 .. t-1 with P(u) proportional to exp(-u/t): keeps 1 - 1/e of all, 1.6 tries. */
static inline uint64_t laplace_remainder(struct bits *bits, uint64_t t) {
  struct chance ratio = {0, 0, 1, t};
  do {
    ratio.whole = below(bits, t);
  } while (!bernoulli(bits, &ratio, 1, 1));
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
    y.negative = (int)bits_take(bits, 1);
  } while (y.negative && y.magnitude == 0);
  return y;
}

/* n/(base*parts) with the least number of parts that makes it less than 1. */
static inline struct chance part_of(uint128 n, uint64_t base) {
  return n < base ? (struct chance){(uint64_t)n, 0, 1, base}
                  : chance_of(n, base, (uint64_t)(n / base) + 1);
}

/*
** An event of probability exp(-n/base), n below 2^63 base: as many events as n/base has parts, all
** of which must happen; the first that does not ends it.
*/
static inline int decays(struct bits *bits, uint128 n, uint64_t base) {
  struct chance part = part_of(n, base);
  uint64_t events = part.parts;
  while (events > 0 && bernoulli(bits, &part, 1, 1)) events--;
  return events == 0;
}

#endif
