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
** (release/procedure.h) between the inner point x = inner[i] and the outer point z = outer[i]. The
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

#endif
