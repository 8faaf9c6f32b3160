/*
** discrete_laplace.h: exact discrete Laplace noise, and the noise that widens one scale to another.
** Integers only.
**
** L_Z(t) has P(y) proportional to exp(-|y|/t) on the integers, t a positive integer.
*/
#ifndef DIFFUSE_NOISE_DISCRETE_LAPLACE_H
#define DIFFUSE_NOISE_DISCRETE_LAPLACE_H

#include <stddef.h>
#include <stdint.h>

/* Scales are positive and below this bound. */
#define DISCRETE_LAPLACE_MAX_SCALE ((uint64_t)1 << 31)

/*
** Fills noise[0 .. count-1] with independent draws of L_Z(scale). Returns 1, or 0 if the system
** provided no random bytes or the scale is out of range. After a failure the noise is all zeros; do
** not use it.
*/
int discrete_laplace_draw(uint64_t scale, int64_t *noise, size_t count);

/*
** Noise that turns L_Z(from) into L_Z(to), from <= to. With p = exp(-1/from) and r = exp(-1/to),
** the noise is 0 with probability (p/r) ((1-r)/(1-p))^2 and a draw of L_Z(to) otherwise. (The
** generating function of L_Z with ratio p is (1-p)^2/((1-pz)(1-p/z)). The quotient of two of them
** is a mixture of 1 and the outer one.)
*/
int discrete_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count);

#endif
