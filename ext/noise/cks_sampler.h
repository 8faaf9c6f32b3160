/*
** cks_sampler.h: the discrete Gaussian of Canonne, Kamath and Steinke (2020), Algorithm 3, in
** integers.
**
** It works for every variance. The extension uses it for small variances, and the unit tests
** compare gaussian_table.h with it.
*/
#ifndef DIFFUSE_NOISE_CKS_SAMPLER_H
#define DIFFUSE_NOISE_CKS_SAMPLER_H

#include "noise/csprng.h"

struct cks_sampler {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
};

/* 1 <= variance < 2^62. */
struct cks_sampler cks_sampler_of(uint64_t variance);

/* One draw of N_Z(0, variance). */
int64_t cks_sampler_draw(const struct cks_sampler *law, struct csprng *random);

#endif
