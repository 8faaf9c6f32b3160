/*
** discrete_laplace.h: draws exact discrete Laplace noise, and the noise that widens discrete
** Laplace noise from one scale to a larger one. The code uses integers only.
**
** For a positive integer t, L_Z(t) is the distribution on the integers with P(y) proportional to
** exp(-|y|/t).
*/
#ifndef DIFFUSE_NOISE_DISCRETE_LAPLACE_H
#define DIFFUSE_NOISE_DISCRETE_LAPLACE_H

#include <stddef.h>
#include <stdint.h>

/* Scales are positive and below this bound. */
#define DISCRETE_LAPLACE_MAX_SCALE ((uint64_t)1 << 31)

/*
** Fills noise[0 .. count-1] with independent draws of L_Z(scale). Returns 1, or 0 if the system
** provided no random bytes or the scale is out of range. After a failure the noise is all zeros,
** and the caller must not use it.
*/
int discrete_laplace_draw(uint64_t scale, int64_t *noise, size_t count);

/*
** Fills noise[0 .. count-1] with independent noise that widens L_Z(from) to L_Z(to), from <= to:
** the sum of a draw of L_Z(from) and this noise has the distribution L_Z(to). With p = exp(-1/from)
** and r = exp(-1/to), the noise is 0 with probability (p/r) ((1-r)/(1-p))^2, and a draw of L_Z(to)
** otherwise. This follows from the generating function of L_Z(from), which is
** (1-p)^2/((1-pz)(1-p/z)). The generating function of L_Z(to) divided by that of L_Z(from) is a
** mixture of 1 and the generating function of L_Z(to). The return values are those of
** discrete_laplace_draw().
*/
int discrete_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count);

#endif
