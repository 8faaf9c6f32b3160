/*
** cks_sampler.h: draws discrete Gaussian noise by Algorithm 3 of Canonne, Kamath and Steinke
** (2020), in integers only.
**
** This sampler works for every variance below 2^62. The extension uses this sampler for small
** variances. The unit tests compare gaussian_table.h with this sampler.
*/
#ifndef DIFFUSE_NOISE_CKS_SAMPLER_H
#define DIFFUSE_NOISE_CKS_SAMPLER_H

#include "noise/csprng.h"

struct cks_sampler {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
};

/* Prepares draws of N_Z(0, variance), 1 <= variance < 2^62. */
struct cks_sampler cks_sampler_of(uint64_t variance);

/* Returns one draw of N_Z(0, variance). */
int64_t cks_sampler_draw(const struct cks_sampler *law, struct csprng *random);

#endif
