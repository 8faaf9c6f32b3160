/* lattice.c: see noise.h. No function overflows; comments state the widest intermediate values. A
** signed number is rounded by its magnitude, with halves away from zero.
** Tests: tests/mechanism/test_lattice.c */
#include "noise/noise.h"

/* -x for x <= 2^63 if `negative` is true, otherwise x < 2^63. */
static int64_t with_sign(uint64_t x, int negative) {
  return negative ? (int64_t)-x : (int64_t)x;
}

/* Returns x * 2^shift, saturated at 2^128 - 1. shift >= 0. */
static uint128 shift_left(uint128 x, int64_t shift) {
  if (x == 0) return 0;
  return shift < 128 && x << shift >> shift == x ? x << shift : ~(uint128)0;
}

static uint128 divide_up(uint128 a, uint128 b) {
  return a / b + (a % b > 0);
}

/* a/b rounded to the nearest integer, with halves up. 2 (a % b) might overflow. */
static uint128 divide_nearest(uint128 a, uint128 b) {
  uint128 rest = a % b;
  return a / b + (rest >= b - rest);
}

uint64_t lattice_root(uint128 x) {
  uint64_t root = 0;
  for (int bit = 63; bit >= 0; bit--) {
    uint64_t next = root | (uint64_t)1 << bit;
    if ((uint128)next * next <= x) root = next;
  }
  return root;
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

/* If two totals of the same sign differ by D fine steps, the rounded totals differ by at most
** ceil(D/2^shift) steps; of opposite signs, both can be rounded away from each other, and the
** difference can be floor(D/2^shift) + 1, which is enough in both cases. For every D > 0 and shift
** > 0, some totals have this difference. steps + 1 could exceed 64 bits only for shift 0, where D
** itself is the sensitivity. */
uint64_t lattice_sensitivity(uint64_t distance, int shift) {
  uint64_t steps = shift < 64 ? distance >> shift : 0;
  return steps < UINT64_MAX ? steps + 1 : steps;
}

/* s^2/(2 rate) is s^2 / (mantissa * 2^(exponent + 1)): a positive power of two multiplies the
** denominator, and a negative one the numerator. Saturation does not change the result: a saturated
** denominator exceeds s^2 anyway, so the quotient, rounded up, is 1; with a saturated numerator,
** the quotient exceeds every variance anyway. */
uint64_t lattice_variance(uint64_t sensitivity, uint64_t mantissa, int exponent) {
  if (mantissa == 0) return 0;
  int64_t shift = (int64_t)exponent + 1;
  uint128 square = shift_left((uint128)sensitivity * sensitivity, shift < 0 ? -shift : 0);
  uint128 divisor = shift_left(mantissa, shift > 0 ? shift : 0);
  uint128 least = divide_up(square, divisor);
  return least < LATTICE_VARIANCE_END - 1 ? (uint64_t)least + 1 : 0;
}

/* The product outer * inner is below 2^124. */
uint64_t lattice_refinement(uint64_t inner, uint64_t outer) {
  uint128 least = divide_up((uint128)outer * inner, outer - inner);
  return least < LATTICE_VARIANCE_END ? (uint64_t)least : 0;
}

/* The weights add up to outer < 2^62, so |sum| <= 2^125, and the result is between y and z. */
int64_t lattice_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer) {
  int128 sum = (int128)inner * y + (int128)(outer - inner) * z;
  return with_sign((uint64_t)divide_nearest(lattice_magnitude(sum), outer), sum < 0);
}
