/*
** laplace_bridge.h: draws a point between two points of a path (release/path.h) with discrete
** Laplace noise. The distribution is exact, and the code uses integers and random bits only.
**
** Let n be the new point between the inner point x and the outer point z. The steps from x to n and
** from n to z have the distributions of discrete_laplace_step(), from scale t1 to t2 and from t2 to
** t3. Let d = n - x. Given x and z, the probability of d is proportional to the product of two
** probabilities: that the first step is d, and that the second step is z - x - d. The step from t1
** to t3 is exactly the sum of the two steps, so the joint distribution of the three points is
** exactly that of a path drawn outward.
*/
#ifndef DIFFUSE_NOISE_LAPLACE_BRIDGE_H
#define DIFFUSE_NOISE_LAPLACE_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

/* The scales t1, t2 and t3. 1 <= inner < middle < outer < DISCRETE_LAPLACE_MAX_SCALE. */
struct laplace_bridge {
  uint64_t inner, middle, outer;
};

/*
** Fills between[0 .. count-1] with independent draws. Draw i is the new point n for x = inner[i]
** and z = outer[i]. The magnitudes of the points are at most 2^62 + 2^40. Returns 1, or 0 if the
** system provided no random bytes or a scale is out of range. After a failure `between` is all
** zeros, and the caller must not use it.
*/
int laplace_bridge_draw(const struct laplace_bridge *bridge, const int64_t *inner,
                        const int64_t *outer, int64_t *between, size_t count);

#endif
