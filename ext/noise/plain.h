/*
** plain.h: the discrete Gaussian of Canonne, Kamath and Steinke (2020), Algorithm 3, in integers.
**
** For every variance. It serves where strips.h does not pay, and is what strips.h is tested
** against.
*/
#ifndef DIFFUSE_NOISE_PLAIN_H
#define DIFFUSE_NOISE_PLAIN_H

#include "noise/bits.h"

struct plain {
  uint64_t variance; /* V, below 2^62 */
  uint64_t scale;    /* t = isqrt(V) + 1, at most 2^31 */
  uint64_t square;   /* t^2, at most 2^62 */
};

/* 1 <= variance < 2^62. */
struct plain plain_of(uint64_t variance);

/* One draw of N_Z(0, variance). */
int64_t plain_draw(const struct plain *law, struct bits *bits);

#endif
