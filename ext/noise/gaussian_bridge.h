/*
** gaussian_bridge.h: draws a point between two points of a path (release/path.h) with discrete
** Gaussian steps. The distribution is exact, and the code uses integers and random bits only.
**
** Let n be the new point between the inner point x and the outer point z. The step from x to n has
** the distribution N_Z(0, a), and the step from n to z has the distribution N_Z(0, b). Given x and
** z, the difference d = n - x has P(d) proportional to exp(-d^2/(2a) - (z - x - d)^2/(2b)). This is
** a discrete Gaussian of variance ab/(a + b) around the rational centre (z - x) a/(a + b).
*/
#ifndef DIFFUSE_NOISE_GAUSSIAN_BRIDGE_H
#define DIFFUSE_NOISE_GAUSSIAN_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

/* The variances of the two steps. Both are positive, and their sum is below 2^62. */
struct gaussian_bridge {
  uint64_t inward, outward; /* a and b */
};

/*
** Fills between[0 .. count-1] with independent draws. Draw i is the new point n for x = inner[i]
** and z = outer[i]. The magnitudes of the points are at most 2^62 + 2^40. Returns 1, or 0 if the
** system provided no random bytes or a variance is out of range. After a failure `between` is all
** zeros, and the caller must not use it.
*/
int gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                         const int64_t *outer, int64_t *between, size_t count);

#endif
