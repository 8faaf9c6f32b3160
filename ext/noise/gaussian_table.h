/*
** gaussian_table.h: draws discrete Gaussian noise with a table of strips. The distribution is
** exactly that of cks_sampler.h. Most draws need one random word.
**
** All variances share one table. The first call of gaussian_table_of() builds the table for all
** threads.
*/
#ifndef DIFFUSE_NOISE_GAUSSIAN_TABLE_H
#define DIFFUSE_NOISE_GAUSSIAN_TABLE_H

#include "noise/csprng.h"

/*
** The least variance for which the table is faster than cks_sampler.h. For smaller variances the
** table would reject most proposals.
*/
#define GAUSSIAN_TABLE_LEAST_VARIANCE ((uint64_t)1 << 8)

struct gaussian_table {
  uint64_t variance; /* V */
  uint64_t width;    /* w: the least integer with 1024 w^2 >= V, at most 2^26 */
  uint64_t excess;   /* 2^29 mod w */
  uint64_t deficit;  /* D = 1024 w^2 - V */
  uint64_t slope;    /* an upper bound on 2^39 w^2/V */
  uint64_t bend;     /* an upper bound on 2^29 D/V */
};

/* Prepares draws of N_Z(0, variance), GAUSSIAN_TABLE_LEAST_VARIANCE <= variance < 2^62. */
struct gaussian_table gaussian_table_of(uint64_t variance);

/* Returns one draw of N_Z(0, variance). */
int64_t gaussian_table_draw(const struct gaussian_table *law, struct csprng *random);

#endif
