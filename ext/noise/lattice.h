/* lattice.h: exact integer arithmetic for sums of clipped contributions, for rounding these sums to
** released integers, and for the variances of the noise.
**
** A contribution is an integer number of fine steps. A release is an integer number of steps, and
** one step is 2^shift fine steps. Every function has a result for all integer arguments in the
** stated ranges. */
#ifndef DIFFUSE_NOISE_LATTICE_H
#define DIFFUSE_NOISE_LATTICE_H

#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Rows, sums and totals saturate at these limits. The variance of every point of a release
** (release/procedure.h) must be below LATTICE_VARIANCE_END. */
#define LATTICE_ROW_BITS     90                  /* a row saturates at +-2^90 fine steps */
#define LATTICE_SUM          ((uint128)1 << 125) /* sums of rows saturate at +-2^125 fine steps */
#define LATTICE_TOTAL        ((int64_t)1 << 62)  /* a released total saturates at +-2^62 */
#define LATTICE_MIN_VARIANCE ((uint64_t)1 << 20)
#define LATTICE_VARIANCE_END ((uint64_t)1 << 62) /* variances are below this number */
/* Least variance of the noise that makes one point of a release from the next point inward. */
#define LATTICE_MIN_STEP 16

static inline uint128 lattice_magnitude(int128 x) { /* |x|, even for the least int128 */
  return x < 0 ? -(uint128)x : (uint128)x;
}

uint64_t lattice_root(uint128 x);                        /* floor(sqrt(x)) */
int128 lattice_clamp(int128 x, int128 low, int128 high); /* to [low, high] */

/* x + y, where x, y and the sum saturate at +-2^125; fast if x and y are within +-2^124, because
** then nothing can saturate. */
int128 lattice_add_large(int128 x, int128 y);
static inline int128 lattice_add(int128 x, int128 y) {
  uint64_t high_x = (uint64_t)(x >> 64) + ((uint64_t)1 << 60);
  uint64_t high_y = (uint64_t)(y >> 64) + ((uint64_t)1 << 60);
  return (high_x | high_y) >> 61 ? lattice_add_large(x, y) : x + y;
}

/* Rounds a total of fine steps to the nearest number of steps, with halves away from zero. The
** result saturates at +-LATTICE_TOTAL. 0 <= shift <= 100 and |total| < 2^126. If two totals differ
** by at most D fine steps, the rounded totals differ by at most lattice_sensitivity(D, shift). */
int64_t lattice_round(int128 total, int shift);

/* Returns the integer sensitivity of the rounded total: floor(distance / 2^shift) + 1, saturated at
** 2^64 - 1. `distance` is the sensitivity of the total in fine steps. shift >= 0. */
uint64_t lattice_sensitivity(uint64_t distance, int shift);

/* Returns the least admissible variance V for sensitivity s < 2^32 at the zCDP rate mantissa *
** 2^exponent, for any int: V = ceil(s^2 / (2 rate)) + 1. With this V, both s^2/(2V) and s^2/(2(V -
** 1/12)) are at most the rate. Returns 0 if V would not be below LATTICE_VARIANCE_END, or if the
** rate is zero. */
uint64_t lattice_variance(uint64_t sensitivity, uint64_t mantissa, int exponent);

/* Returns the variance of the fresh draw that, averaged with a point of variance `outer`, gives a
** point of the smaller variance `inner`: ceil(outer * inner / (outer - inner)). Then 1/result +
** 1/outer <= 1/inner. 0 < inner < outer < LATTICE_VARIANCE_END. Returns 0 if the result would not
** be below LATTICE_VARIANCE_END. */
uint64_t lattice_refinement(uint64_t inner, uint64_t outer);

/* Returns the refined point (inner/outer) y + (1 - inner/outer) z, rounded to the nearest integer
** with halves away from zero. y is the outer point and z is the fresh draw. 0 < inner < outer <
** LATTICE_VARIANCE_END. */
int64_t lattice_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer);

#endif
