/* gaussian_samplers.h: two samplers of the discrete Gaussian distribution N_Z(0, V). Both are
** exact. The one of Canonne, Kamath and Steinke (2020, Algorithm 3) works for every variance below
** 2^62. The table usually needs one random word, but rejects most proposals if the variance is
** small. All variances share one table, which the first call of gaussian_table_of() builds for all
** threads. */
#ifndef DIFFUSE_NOISE_GAUSSIAN_SAMPLERS_H
#define DIFFUSE_NOISE_GAUSSIAN_SAMPLERS_H

#include "noise/csprng.h"

struct cks_sampler {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
};

/* Prepares draws of N_Z(0, variance), 1 <= variance < 2^62, and returns one. */
struct cks_sampler cks_sampler_of(uint64_t variance);
int64_t cks_sampler_draw(const struct cks_sampler *law, struct csprng *random);

/* The least variance for which the table is faster. */
#define GAUSSIAN_TABLE_LEAST_VARIANCE ((uint64_t)1 << 8)

struct gaussian_table {
  uint64_t variance; /* V */
  uint64_t width;    /* w: the least integer with 1024 w^2 >= V, at most 2^26 */
  uint64_t excess;   /* 2^29 mod w */
  uint64_t deficit;  /* D = 1024 w^2 - V */
  uint64_t slope;    /* an upper bound on 2^39 w^2/V */
  uint64_t bend;     /* an upper bound on 2^29 D/V */
};

/* The same for GAUSSIAN_TABLE_LEAST_VARIANCE <= variance < 2^62. */
struct gaussian_table gaussian_table_of(uint64_t variance);
int64_t gaussian_table_draw(const struct gaussian_table *law, struct csprng *random);

#endif
