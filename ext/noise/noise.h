/* noise.h: draws from exact distributions on the integers, with integers and random bits only, no
** floating point and no approximation, and with a new key for each call (exact_events.h). Every
** function returns 1, or 0 if the system provided no random bytes or a parameter is out of range:
** then the result is 0 or all zeros, and the caller must not use it. */
#ifndef DIFFUSE_NOISE_NOISE_H
#define DIFFUSE_NOISE_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Random bytes of the operating system. This code keeps no state, buffer or seed that a fork could
** duplicate. Unit tests replace the function at link time; there is no other way to replace it. */
int entropy_fill(void *bytes, size_t count);

/* Overwrites a secret with zeros. The compiler cannot remove these writes. */
void entropy_wipe(void *bytes, size_t count);

/* Fills noise[0 .. count-1] with independent draws of N_Z(0, variance), P(y) proportional to
** exp(-y^2/(2 variance)), 1 <= variance < DISCRETE_GAUSSIAN_MAX_VARIANCE. The running time reveals
** little about the coordinates of a short vector. */
#define DISCRETE_GAUSSIAN_MAX_VARIANCE ((uint64_t)1 << 62)
int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count);

/* Fills between[0 .. count-1] with independent draws. Draw i is a new point n of a path
** (release/noise_path.c) between the inner point x = inner[i] and the outer point z = outer[i]. The
** steps from x to n and from n to z have the distributions N_Z(0, bridge->inward) and N_Z(0,
** bridge->outward). Both variances are positive, and their sum is below 2^62. The magnitudes of the
** points are at most 2^62 + 2^40. */
struct gaussian_bridge {
  uint64_t inward, outward;
};
int gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                         const int64_t *outer, int64_t *between, size_t count);

/* The same with L_Z(scale), P(y) proportional to exp(-|y|/scale), 1 <= scale <
** DISCRETE_LAPLACE_MAX_SCALE. */
#define DISCRETE_LAPLACE_MAX_SCALE ((uint64_t)1 << 31)
int discrete_laplace_draw(uint64_t scale, int64_t *noise, size_t count);

/* Fills noise[0 .. count-1] with independent noise that widens L_Z(from) to L_Z(to), from <= to: a
** draw of L_Z(from) plus this noise has the distribution L_Z(to). With p = exp(-1/from) and r =
** exp(-1/to), the noise is 0 with probability (p/r) ((1-r)/(1-p))^2, and a draw of L_Z(to)
** otherwise: the generating function of L_Z(from) is (1-p)^2/((1-pz)(1-p/z)), and that of L_Z(to)
** divided by it is a mixture of 1 and that of L_Z(to). */
int discrete_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count);

/* Draws points between two points, as gaussian_bridge_draw() does, with steps of
** discrete_laplace_step() from scale `inner` to `middle` and from `middle` to `outer`. The step
** from `inner` to `outer` is exactly their sum, so the joint distribution of the three points is
** exactly that of a path drawn outward. 1 <= inner < middle < outer <
** DISCRETE_LAPLACE_MAX_SCALE. */
struct laplace_bridge {
  uint64_t inner, middle, outer;
};
int laplace_bridge_draw(const struct laplace_bridge *bridge, const int64_t *inner,
                        const int64_t *outer, int64_t *between, size_t count);

/* The exponential mechanism (McSherry and Talwar 2007): sets *chosen to an index i < count with
** P(i) proportional to exp(exponent utility[i] / 2^CATEGORICAL_SHIFT). exponent < 2^53, count > 0.
** A utility that is more than 2^50 below the highest one counts as exactly 2^50 below. */
#define CATEGORICAL_SHIFT 40
int categorical_exponential(const int64_t *utility, size_t count, uint64_t exponent,
                            size_t *chosen);

/* Permute-and-flip (McKenna and Sheldon 2020): takes the indices in a random order, accepts each
** with probability exp(exponent (utility[i] - highest utility) / 2^CATEGORICAL_SHIFT), and sets
** *chosen to the first that is accepted. The other limits are those of categorical_exponential().
** `order` has room for `count` < 2^32 numbers. */
int categorical_flip(const int64_t *utility, uint32_t *order, size_t count, uint64_t exponent,
                     size_t *chosen);

/* Sets *chosen to an index i < count with P(i) = weight[i] / (sum of the weights). The sum must be
** in [1, 2^63). */
int categorical_weighted(const uint64_t *weight, size_t count, size_t *chosen);

/* ---- the lattice ----------------------------------------------------------------------------- */

/* Exact integer arithmetic for sums of clipped contributions, for rounding these sums to
** released integers, and for the variances of the noise.
**
** A contribution is an integer number of fine steps. A release is an integer number of steps, and
** one step is 2^shift fine steps. Every function has a result for all integer arguments in the
** stated ranges. */

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Rows, sums and totals saturate at these limits. The variance of every point of a release
** (release/noise_path.c) must be below LATTICE_VARIANCE_END. */
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
