/*
** laplace.h: exact discrete Laplace noise, and the kernel under which it is closed. Integers only.
**
** L_Z(t) has P(y) proportional to exp(-|y|/t) on the integers, t a positive integer.
*/
#ifndef DIFFUSE_NOISE_LAPLACE_H
#define DIFFUSE_NOISE_LAPLACE_H

#include <stddef.h>
#include <stdint.h>

/* Scales are positive and below this bound. */
#define SAMPLER_MAX_SCALE ((uint64_t)1 << 31)

/*
** Fills noise[0 .. count-1] with independent draws of L_Z(scale). Returns 0, or -1 when the system
** gave no random bytes or the scale is out of range: noise is then all zeros and must not be used.
*/
int sampler_laplace(uint64_t scale, int64_t *noise, size_t count);

/*
** Noise that makes L_Z(from) into L_Z(to), from <= to: with p = exp(-1/from) and r = exp(-1/to) it
** is 0 with probability (p/r) ((1-r)/(1-p))^2 and otherwise a draw of L_Z(to). (The generating
** function of L_Z with ratio p is (1-p)^2/((1-pz)(1-p/z)); the quotient of two such is a mixture of
** 1 and the outer one.)
*/
int sampler_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count);

#endif
