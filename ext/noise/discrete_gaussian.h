/*
** discrete_gaussian.h: draws exact discrete Gaussian noise with integers and random bits only.
**
** N_Z(0, V) is the distribution on the integers with P(y) proportional to exp(-y^2/(2V)). The code
** uses no floating point and no approximation. With ideal random bits, the draws have exactly this
** distribution for every V. For variances of at least 2^8 a draw uses a table and usually one
** random word (gaussian_table.h). For smaller variances a draw uses the algorithm of Canonne,
** Kamath and Steinke (cks_sampler.h). csprng.h provides the random bits, with a new key for each
** call.
*/
#ifndef DIFFUSE_NOISE_DISCRETE_GAUSSIAN_H
#define DIFFUSE_NOISE_DISCRETE_GAUSSIAN_H

#include <stddef.h>
#include <stdint.h>

/* Variances are positive and below this bound. */
#define DISCRETE_GAUSSIAN_MAX_VARIANCE ((uint64_t)1 << 62)

/*
** Fills noise[0 .. count-1] with independent draws of N_Z(0, variance), 1 <= variance <
** DISCRETE_GAUSSIAN_MAX_VARIANCE. The time of a draw depends on its value. For a short vector, the
** function therefore makes a batch of draws for each coordinate and picks one of the batch at
** random. The running time then reveals little about the coordinate. Returns 1, or 0 if the system
** provided no random bytes or the variance is out of range. After a failure the noise is all zeros,
** and the caller must not use it.
*/
int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count);

#endif
