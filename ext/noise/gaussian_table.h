/*
** gaussian_table.h: the discrete Gaussian from a table of strips. It is as exact as cks_sampler.h
** and needs one random word for most draws.
**
** All variances share one table. The first draw builds it, once for all threads.
*/
#ifndef DIFFUSE_NOISE_GAUSSIAN_TABLE_H
#define DIFFUSE_NOISE_GAUSSIAN_TABLE_H

#include "noise/csprng.h"

/* From here on the table is faster. Below 2^8 it would reject most proposals. */
#define GAUSSIAN_TABLE_LEAST_VARIANCE ((uint64_t)1 << 8)

struct gaussian_table {
  uint64_t variance; /* V */
  uint64_t width;    /* w: least with 1024 w^2 >= V, at most 2^26 */
  uint64_t excess;   /* 2^29 mod w */
  uint64_t deficit;  /* D = 1024 w^2 - V */
  uint64_t slope;    /* above 2^39 w^2/V */
  uint64_t bend;     /* above 2^29 D/V */
};

/* GAUSSIAN_TABLE_LEAST_VARIANCE <= variance < 2^62. */
struct gaussian_table gaussian_table_of(uint64_t variance);

/* One draw of N_Z(0, variance). */
int64_t gaussian_table_draw(const struct gaussian_table *law, struct csprng *random);

#endif
