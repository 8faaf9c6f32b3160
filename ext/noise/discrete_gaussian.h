/*
** discrete_gaussian.h: exact discrete Gaussian noise from integers and random bits only.
**
** N_Z(0, V) has P(y) proportional to exp(-y^2/(2V)) on the integers. There is no floating point and
** no approximation: with ideal random bits the distribution is exactly this one for every V.
** Variances from 2^8 up use a table and one random word (gaussian_table.h), smaller ones the
** algorithm of Canonne, Kamath and Steinke (cks_sampler.h). csprng.h provides the bits, under a new
** key for each call.
*/
#ifndef DIFFUSE_NOISE_DISCRETE_GAUSSIAN_H
#define DIFFUSE_NOISE_DISCRETE_GAUSSIAN_H

#include <stddef.h>
#include <stdint.h>

/* Variances are positive and below this bound. */
#define DISCRETE_GAUSSIAN_MAX_VARIANCE ((uint64_t)1 << 62)

/*
** Fills noise[0 .. count-1] with independent draws of N_Z(0, variance), 1 <= variance <
** DISCRETE_GAUSSIAN_MAX_VARIANCE. Rejection sampling takes longer for large values. In a short
** vector each coordinate is therefore picked at random from a batch of draws, so that the time
** reveals little about it. Returns 1, or 0 if the system provided no random bytes or the variance
** is out of range. After a failure the noise is all zeros; do not use it.
*/
int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count);

#endif
