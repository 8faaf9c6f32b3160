/*
** cks_sampler.c: see cks_sampler.h.
**
** Algorithm 3 of the paper proposes y from a discrete Laplace distribution of scale t, where t is
** about sqrt(V). The algorithm accepts y with probability exp(-(|y| - V/t)^2/(2V)). For V near
** 2^41, a draw uses about 4 random words of 64 bits.
** Tests: tests/noise/test_discrete_gaussian_source.c
*/
#include "noise/cks_sampler.h"

#include "noise/exact_geometric.h"

struct cks_sampler cks_sampler_of(uint64_t variance) {
  uint64_t scale = isqrt(variance) + 1;
  return (struct cks_sampler){variance, scale, scale * scale};
}

/*
** Accepts y with probability exp(-(|y| - V/t)^2/(2V)) = exp(-n^2/(2 V t^2)), where n = | |y| t -
** V|.
**
** bernoulli() takes only exponents of at most 1, and n^2 could need 140 bits. The function
** therefore divides the exponent n^2/(2 V t^2) into m1 m2 equal parts, where m1 = floor(n/V) + 1
** and m2 = floor(n/t^2) + 1. Each part is (n/(V m1)) (n/(t^2 m2))/2, which is below 1. For each
** part, the function draws an event of probability exp(-part). It accepts y if all these events
** happen. n/V is about ||y|/t - 1|, so there is one part for |y| < 2t. About three of four
** proposals are accepted.
*/
static inline int accept(struct csprng *random, const struct cks_sampler *law, uint64_t magnitude) {
  uint128 product = (uint128)magnitude * law->scale;
  uint128 n = product > law->variance ? product - law->variance : law->variance - product;
  struct chance factors[2] = {part_of(n, law->variance), part_of(n, law->square)};
  uint128 events = (uint128)factors[0].parts * factors[1].parts;
  while (events > 0 && bernoulli(random, factors, 2, 2)) events--;
  return events == 0;
}

/* The loop makes 1.3 proposals on average. */
int64_t cks_sampler_draw(const struct cks_sampler *law, struct csprng *random) {
  struct proposal y;
  do {
    y = laplace(random, law->scale);
  } while (!accept(random, law, y.magnitude));
  return y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
}
