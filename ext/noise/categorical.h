/*
** categorical.h: exact draws of one of many categories. Integers only.
*/
#ifndef DIFFUSE_NOISE_CATEGORICAL_H
#define DIFFUSE_NOISE_CATEGORICAL_H

#include <stddef.h>
#include <stdint.h>

/* Exponents are integers divided by 2^CATEGORICAL_SHIFT. */
#define CATEGORICAL_SHIFT 40

/*
** The exponential mechanism (McSherry and Talwar 2007): picks i < count with P(i) proportional to
** exp(exponent utility[i] / 2^CATEGORICAL_SHIFT). exponent < 2^53. Utilities that are more than
** 2^50 below the highest count as 2^50 below. Returns 1, or 0 if the system provided no random
** bytes or count is 0. After a failure *chosen is 0; do not use it.
*/
int categorical_exponential(const int64_t *utility, size_t count, uint64_t exponent,
                            size_t *chosen);

/*
** Picks i < count with P(i) = weight[i] / (sum of the weights). The sum must be in [1, 2^63).
** Returns the same as above.
*/
int categorical_weighted(const uint64_t *weight, size_t count, size_t *chosen);

#endif
