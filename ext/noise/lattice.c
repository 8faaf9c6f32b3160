/*
** lattice.c: exact integer arithmetic between the clipped contributions and the published number
** (contracts in lattice.h).
**
** Nothing overflows. Signed numbers are split into sign and magnitude before they are rounded, as
** halves go away from zero; the widest intermediate value is named where it occurs.
*/
#include "noise/lattice.h"

/* |x| <= 2^63, and 2^63 only for negative numbers. */
static int64_t with_sign(uint64_t x, int negative) {
  return negative ? (int64_t)-x : (int64_t)x;
}

static int bit_length(uint128 x) {
  int length = 0;
  for (; x > 0; x >>= 1) length++;
  return length;
}

/* x * 2^shift, saturated at 2^128 - 1. shift >= 0. */
static uint128 shift_left(uint128 x, int64_t shift) {
  if (x == 0) return 0;
  return bit_length(x) + shift <= 128 ? x << shift : ~(uint128)0;
}

static uint128 divide_up(uint128 a, uint128 b) {
  return a / b + (a % b > 0);
}

/* To nearest, halves up. a % b and b - a % b are compared, because twice either might not fit. */
static uint128 divide_nearest(uint128 a, uint128 b) {
  uint128 rest = a % b;
  return a / b + (rest >= b - rest);
}

int128 lattice_clamp(int128 x, int128 low, int128 high) {
  if (x < low) return low;
  return x > high ? high : x;
}

int128 lattice_add_large(int128 x, int128 y) {
  int128 end = (int128)LATTICE_SUM;
  return lattice_clamp(lattice_clamp(x, -end, end) + lattice_clamp(y, -end, end), -end, end);
}

int64_t lattice_round(int128 total, int shift) {
  uint128 steps = divide_nearest(lattice_magnitude(total), (uint128)1 << shift);
  if (steps > (uint128)LATTICE_TOTAL) steps = (uint128)LATTICE_TOTAL;
  return with_sign((uint64_t)steps, total < 0);
}

/*
** Rounding to nearest takes a fine distance D to at most ceil(D/2^shift) steps, except across zero,
** where halves part in both directions: floor(D/2^shift) + 1 covers both, and is attained for every
** D > 0 and shift > 0. Only for shift 0 could the sum exceed 64 bits; D is the sensitivity there.
*/
uint64_t lattice_sensitivity(uint64_t distance, int shift) {
  uint64_t steps = shift < 64 ? distance >> shift : 0;
  return steps < UINT64_MAX ? steps + 1 : steps;
}

/*
** s^2/(2 rate) = s^2 / (mantissa * 2^(exponent + 1)); the power of two goes to the side where it is
** positive. Saturation does not change the result: a divisor above s^2 gives 1 whatever it is, and
** 2^128 - 1 divided by 64 bits is beyond every variance, like what it stands for.
*/
uint64_t lattice_variance(uint64_t sensitivity, uint64_t mantissa, int exponent) {
  if (mantissa == 0) return 0;
  int64_t shift = (int64_t)exponent + 1;
  uint128 square = shift_left((uint128)sensitivity * sensitivity, shift < 0 ? -shift : 0);
  uint128 divisor = shift_left(mantissa, shift > 0 ? shift : 0);
  uint128 least = divide_up(square, divisor);
  return least < LATTICE_VARIANCE_END - 1 ? (uint64_t)least + 1 : 0;
}

/* The product is below 2^124. */
uint64_t lattice_refinement(uint64_t inner, uint64_t outer) {
  uint128 least = divide_up((uint128)outer * inner, outer - inner);
  return least < LATTICE_VARIANCE_END ? (uint64_t)least : 0;
}

/* The weights add up to outer < 2^62: the sum is at most 2^125, the result between y and z. */
int64_t lattice_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer) {
  int128 sum = (int128)inner * y + (int128)(outer - inner) * z;
  return with_sign((uint64_t)divide_nearest(lattice_magnitude(sum), outer), sum < 0);
}
