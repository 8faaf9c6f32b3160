/*
** categorical.h: draws one of many categories, with exact probabilities. The code uses integers
** only.
*/
#ifndef DIFFUSE_NOISE_CATEGORICAL_H
#define DIFFUSE_NOISE_CATEGORICAL_H

#include <stddef.h>
#include <stdint.h>

/* The real exponent is the integer argument `exponent` divided by 2^CATEGORICAL_SHIFT. */
#define CATEGORICAL_SHIFT 40

/*
** The exponential mechanism (McSherry and Talwar 2007): sets *chosen to an index i < count with
** P(i) proportional to exp(exponent utility[i] / 2^CATEGORICAL_SHIFT). exponent < 2^53. If a
** utility is more than 2^50 below the highest utility, the function treats it as exactly 2^50
** below. Returns 1, or 0 if the system provided no random bytes, count is 0 or exponent is too
** large. After a failure *chosen is 0, and the caller must not use *chosen.
*/
int categorical_exponential(const int64_t *utility, size_t count, uint64_t exponent,
                            size_t *chosen);

/*
** Sets *chosen to an index i < count with P(i) = weight[i] / (sum of the weights). The sum must be
** in [1, 2^63). Returns 1, or 0 if the system provided no random bytes or the sum is out of range.
** After a failure *chosen is 0, and the caller must not use *chosen.
*/
int categorical_weighted(const uint64_t *weight, size_t count, size_t *chosen);

#endif
