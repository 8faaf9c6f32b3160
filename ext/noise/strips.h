/*
** strips.h: the discrete Gaussian from a table of strips: exact as plain.h, one random word a draw.
**
** The table is the same for all variances. It is made by the first draw, once for all threads.
*/
#ifndef DIFFUSE_NOISE_STRIPS_H
#define DIFFUSE_NOISE_STRIPS_H

#include "noise/bits.h"

/* From here on strips are faster than the plain form. Below 2^8 most proposals would be refused. */
#define STRIPS_LEAST_VARIANCE ((uint64_t)1 << 8)

struct strips {
  uint64_t variance; /* V */
  uint64_t width;    /* w: least with 1024 w^2 >= V, at most 2^26 */
  uint64_t excess;   /* 2^29 mod w */
  uint64_t deficit;  /* D = 1024 w^2 - V */
  uint64_t slope;    /* above 2^39 w^2/V */
  uint64_t bend;     /* above 2^29 D/V */
};

/* STRIPS_LEAST_VARIANCE <= variance < 2^62. */
struct strips strips_of(uint64_t variance);

/* One draw of N_Z(0, variance). */
int64_t strips_draw(const struct strips *law, struct bits *bits);

#endif
