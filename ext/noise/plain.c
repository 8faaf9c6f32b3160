/*
** plain.c: the exact discrete Gaussian of Canonne, Kamath and Steinke (2020), in integers.
**
** Algorithm 3 of the paper: propose y from a discrete Laplace of scale t, about sqrt(V), and accept
** it with probability exp(-(|y| - V/t)^2/(2V)). On top of the events of events.h,
**
**   laplace()     P(y) proportional to exp(-|y|/t)
**   plain_draw()  P(y) proportional to exp(-y^2/(2V))
**
** A draw uses about 4 words of 64 bits (V near 2^41).
*/
#include "noise/plain.h"

#include <stddef.h>

#include "noise/events.h"

struct proposal {
  uint64_t magnitude; /* |y| */
  int negative;
};

struct plain plain_of(uint64_t variance) {
  uint64_t scale = isqrt(variance) + 1;
  return (struct plain){variance, scale, scale * scale};
}

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
** Accepts y with probability exp(-(|y| - V/t)^2/(2V)) = exp(-n^2/(2 V t^2)), n = ||y| t - V|.
**
** Neither n^2 (140 bits) nor an exponent above 1 is ever formed: with m1 = floor(n/V) + 1 and
** m2 = floor(n/t^2) + 1 the exponent is m1 m2 times (n/(V m1)) (n/(t^2 m2))/2, so that many
** events of that exponent must all happen. n/V is about ||y|/t - 1|: 1 event up to |y| = 2t,
** then 4, 9, ...; the first that fails ends it. Three proposals of four are accepted.
*/
static inline int accept(struct bits *bits, const struct plain *law, uint64_t magnitude) {
  uint128 product = (uint128)magnitude * law->scale;
  uint128 n = product > law->variance ? product - law->variance : law->variance - product;
  struct chance factors[2] = {part_of(n, law->variance), part_of(n, law->square)};
  uint128 events = (uint128)factors[0].parts * factors[1].parts;
  while (events > 0 && bernoulli(bits, factors, 2, 2)) events--;
  return events == 0;
}

/* 1.3 proposals on average. */
int64_t plain_draw(const struct plain *law, struct bits *bits) {
  struct proposal y;
  do {
    y = laplace(bits, law->scale);
  } while (!accept(bits, law, y.magnitude));
  return y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
}
