/*
** lattice.h: exact integer arithmetic between the clipped contributions and the published number.
**
** Contributions live on a fine lattice, releases on a coarser one, 2^shift fine steps to a step.
** Every function is a total function of its integer arguments inside the stated ranges.
*/
#ifndef DIFFUSE_NOISE_LATTICE_H
#define DIFFUSE_NOISE_LATTICE_H

#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Rows and totals saturate at these limits; the variances of a path must stay below theirs. */
#define LATTICE_ROW_BITS     90                  /* a row saturates at +-2^90 fine steps */
#define LATTICE_SUM          ((uint128)1 << 125) /* sums of rows saturate at +-2^125 fine steps */
#define LATTICE_TOTAL        ((int64_t)1 << 62)  /* a released total saturates at +-2^62 */
#define LATTICE_MIN_VARIANCE ((uint64_t)1 << 20)
#define LATTICE_VARIANCE_END ((uint64_t)1 << 62) /* variances are below this */
#define LATTICE_MIN_STEP     16                  /* least variance of one step outward */

/* |x|, also for the least number. */
static inline uint128 lattice_magnitude(int128 x) {
  return x < 0 ? -(uint128)x : (uint128)x;
}

/* Clamps x to [low, high]. low <= high. */
int128 lattice_clamp(int128 x, int128 low, int128 high);

/*
** x + y, where x, y and the sum saturate at +-2^125. lattice_add() needs no saturation if x and y
** are within +-2^124.
*/
int128 lattice_add_large(int128 x, int128 y);
static inline int128 lattice_add(int128 x, int128 y) {
  uint64_t high_x = (uint64_t)(x >> 64) + ((uint64_t)1 << 60);
  uint64_t high_y = (uint64_t)(y >> 64) + ((uint64_t)1 << 60);
  return (high_x | high_y) >> 61 ? lattice_add_large(x, y) : x + y;
}

/*
** Rounds a fine total to the release lattice, to nearest with halves away from zero. The result
** saturates at +-LATTICE_TOTAL. 0 <= shift <= 100; |total| < 2^126. For two totals that differ by
** at most D, the results differ by at most lattice_sensitivity(D, shift).
*/
int64_t lattice_round(int128 total, int shift);

/*
** Integer sensitivity of the rounded total: floor(distance / 2^shift) + 1, saturated at 2^64 - 1.
** shift >= 0.
*/
uint64_t lattice_sensitivity(uint64_t distance, int shift);

/*
** Least admissible variance for sensitivity s (s < 2^32) at rate mantissa * 2^exponent: ceil(s^2 /
** (2 rate)) + 1, so that neither s^2/(2V) nor s^2/(2(V - 1/12)) exceeds the rate. Any exponent.
** Returns 0 if the result would not be below LATTICE_VARIANCE_END, or if the rate is zero.
*/
uint64_t lattice_variance(uint64_t sensitivity, uint64_t mantissa, int exponent);

/*
** Variance of the fresh draw that refines a point of variance `outer` to one of variance `inner`:
** ceil(outer * inner / (outer - inner)), so that 1/result + 1/outer <= 1/inner. 0 < inner < outer <
** LATTICE_VARIANCE_END. Returns 0 if the result would not be below LATTICE_VARIANCE_END.
*/
uint64_t lattice_refinement(uint64_t inner, uint64_t outer);

/*
** The refined point: (inner/outer) y + (1 - inner/outer) z, rounded to nearest, halves away from
** zero, where y is the published outer point and z the fresh release.
** 0 < inner < outer < LATTICE_VARIANCE_END.
*/
int64_t lattice_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer);

#endif
