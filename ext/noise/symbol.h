/*
** symbol.h: exact draws of one of many symbols. Integers only.
*/
#ifndef DIFFUSE_NOISE_SYMBOL_H
#define DIFFUSE_NOISE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/* Exponents are integers divided by 2^SYMBOL_SHIFT. */
#define SYMBOL_SHIFT 40

/*
** The exponential mechanism (McSherry and Talwar 2007): picks i < count with P(i) proportional to
** exp(exponent utility[i] / 2^SYMBOL_SHIFT). exponent < 2^53. Utilities that are more than 2^50
** below the highest count as 2^50 below. Returns 0, or -1 when the system gave no random bytes or
** count is 0: *chosen is then 0 and must not be used.
*/
int symbol_exponential(const int64_t *utility, size_t count, uint64_t exponent, size_t *chosen);

/*
** Picks i < count with P(i) = weight[i] / sum of weights, which must be in [1, 2^63). Returns as
** above.
*/
int symbol_weighted(const uint64_t *weight, size_t count, size_t *chosen);

#endif
