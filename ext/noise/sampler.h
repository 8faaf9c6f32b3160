/*
** sampler.h: exact discrete Gaussian noise from integers and random bits only.
**
** N_Z(0, V) has P(y) proportional to exp(-y^2/(2V)) on the integers. No floating point, no
** approximation: given ideal random bits the law is this one, for every V. Variances from 2^8 up
** take one random word and a table (strips.h), smaller ones the algorithm of Canonne, Kamath and
** Steinke 2020 (plain.h). The bits are a ChaCha20 keystream under a key that the system gives to
** each call (bits.h).
*/
#ifndef DIFFUSE_NOISE_SAMPLER_H
#define DIFFUSE_NOISE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

/* Variances are positive and below this bound. */
#define SAMPLER_MAX_VARIANCE ((uint64_t)1 << 62)

/*
** Fills noise[0 .. count-1] with independent draws of N_Z(0, variance), 1 <= variance <
** SAMPLER_MAX_VARIANCE. Rejection sampling takes longer for large values, so for short vectors each
** coordinate is picked at random from a batch: the time tells little of what was picked.
** Returns 0, or -1 when the system gave no random bytes or the variance is out of range: noise is
** then all zeros and must not be used.
*/
int sampler_gaussian(uint64_t variance, int64_t *noise, size_t count);

#endif
