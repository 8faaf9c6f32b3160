/*
** lattice.c: exact integer arithmetic between the clipped contributions and the published number
** (contracts in lattice.h).
**
** Nothing overflows. The functions split signed numbers into sign and magnitude before they round,
** because halves are rounded away from zero. Comments name the widest intermediate values.
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

/*
** Rounds to nearest, halves up. The code compares a % b with b - a % b, because twice either might
** overflow.
*/
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
** Rounding to nearest turns a fine distance D into at most ceil(D/2^shift) steps. Across zero,
** halves are rounded in opposite directions, and the distance can be floor(D/2^shift) + 1. That
** number covers both cases and is attained for every D > 0 and shift > 0. The sum could exceed 64
** bits only for shift 0; there D itself is the sensitivity.
*/
uint64_t lattice_sensitivity(uint64_t distance, int shift) {
  uint64_t steps = shift < 64 ? distance >> shift : 0;
  return steps < UINT64_MAX ? steps + 1 : steps;
}

/*
** s^2/(2 rate) = s^2 / (mantissa * 2^(exponent + 1)). The power of two multiplies the side where
** its exponent is positive. Saturation does not change the result: every divisor above s^2 gives 1,
** and 2^128 - 1 divided by a number of 64 bits exceeds every variance, as the unsaturated value
** does.
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

/*
** The weights add up to outer < 2^62, so the sum is at most 2^125 and the result lies between y and
** z.
*/
int64_t lattice_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer) {
  int128 sum = (int128)inner * y + (int128)(outer - inner) * z;
  return with_sign((uint64_t)divide_nearest(lattice_magnitude(sum), outer), sum < 0);
}
