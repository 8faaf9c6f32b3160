/*
** plain.c: the exact discrete Gaussian of Canonne, Kamath and Steinke (2020), in integers.
**
** Algorithm 3 of the paper: propose y from a discrete Laplace of scale t, about sqrt(V), and accept
** it with probability exp(-(|y| - V/t)^2/(2V)).
**
** A draw uses about 4 words of 64 bits (V near 2^41).
*/
#include "noise/plain.h"

#include "noise/geometric.h"

struct plain plain_of(uint64_t variance) {
  uint64_t scale = isqrt(variance) + 1;
  return (struct plain){variance, scale, scale * scale};
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
