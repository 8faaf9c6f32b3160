/* series_matrix.h: the mathematics of a series, one release whose numbers arrive period by period.
**
** Let x_t be the exact sum of period t, and let T be the number of periods. The points of a series
** are y = C x + z. z is independent noise of one variance, and C is a fixed lower triangular matrix
** whose columns have norm 1, the normalised square root of the matrix of running sums (Henzinger,
** Kalinin and Upadhyay 2025). The figure of the periods first..last is r y, where r C is 1 for
** these periods and 0 for all others. So figures are unbiased, they add up, and later points do not
** change them. A running total has 1.5 to 3.5 times the noise of one release of all periods.
**
** All that touches data is computed in integers. With f_k = binom(2k, k)/4^k and s, t from 0:
**   C_ts = L_(t-s) d_s / 2^60
**   F_0 = 2^60,  F_k = floor(F_(k-1) (2k-1)/(2k)),  L_k = floor(F_k / 2^30)
**   d_s = floor(2^60 / (isqrt(sum of L_k^2 for k < T - s) + 1))
** The root is rounded up and the rest is rounded down, so no column is longer than 1. L is a
** Toeplitz matrix, and so is its inverse. One row r therefore leads to the next one in time in
** proportion to T, and all figures of a series take time in proportion to T^2 (struct window).
** Noise in the sum norm (Laplace) has C = 1: there every other matrix would cost more than it
** gains.
**
** math/README.md ("Running totals") has the proofs. */
#ifndef DIFFUSE_MECHANISM_SERIES_MATRIX_H
#define DIFFUSE_MECHANISM_SERIES_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "mechanism/mechanism.h"
#include "noise/lattice.h"
#include "sums/layout.h"

#define SERIES_MAX_PERIODS 4096
#define SERIES_UNIT_BITS   30                /* L_k = 2^30 and d_s = 2^30 stand for 1 */
#define SERIES_SUM         ((int128)1 << 88) /* the sum of a period saturates at +-2^88 */

struct series {
  int periods;
  int64_t *factor; /* L_0, L_1, ...; null: C = 1 */
  int64_t *scale;  /* d_0, d_1, ... */
};

/* Fills a series of 1 to SERIES_MAX_PERIODS periods. Returns 0 if memory runs out. Call
** series_free() in both cases. */
int series_make(struct series *series, int periods, const struct noise_law *noise);
void series_free(struct series *series);

/* Returns C_ts 2^60, the multiplier of the sum of period s in point t. 0 <= s, t < periods. */
int64_t series_multiplier(const struct series *series, int t, int s);

/* Returns one coordinate of point t without noise: (sum of C_ts x_s for s <= t) / 2^shift, rounded
** and saturated like lattice_round(). x_s = sums[s * stride], the exact sum of period s in fine
** steps; it saturates at +-2^88. 0 <= shift <= 70. */
int64_t series_coordinate(const struct series *series, int t, const int128 *sums, size_t stride,
                          int shift);

/* The row r with which the points 0..last are weighted to get the figure of the periods first..last
** (`weights`, last + 1 numbers), and the sum of the squares of r (`variance`): the variance of the
** figure, relative to that of a point. */
struct window {
  const struct series *series;
  int first, last;
  double *weights, variance;
  double *inverse; /* the first column of the inverse of L; null: C = 1 */
};

/* Opens a window on the first `periods` periods of a series, in time in proportion to their square.
** Returns 0 if memory runs out. Call window_close() in both cases. */
int window_open(struct window *window, const struct series *series, int periods);
void window_close(struct window *window);

/* Moves the window to the periods first..last, in time in proportion to `last` for each period that
** enters or leaves it. A window that goes back, or to periods of which it has none, begins anew. */
void window_move(struct window *window, int first, int last);

/* Turns the layout of one release (layout_make() by unit, with public keys) into that of a series
** with the same clip. Then design_make(), the functions of struct mechanism and the slack apply to
** the series: shape->distance and shape->touched are those of all periods together. The number of
** periods times that of the coordinates of a period, shape->coordinates + shape->diagnoses, must be
** at most LAYOUT_MAX_COORDINATES.
**
** Let B be the reach of a unit: over all periods, the norms of what the unit counts add up to at
** most B. Adding or removing the unit moves C x by at most B. Replacing a unit moves C x by at most
** k B, because two units may count in different periods:
**   one coordinate that is not negative (a count):  k = max(1, sqrt(2 - 2 g)),
**   where g = C_(T-1)0 C_(T-1)(T-1) is the least product of two columns of C
**   otherwise:  k = max(sqrt(2), spread);  in the sum norm:  k = 2
** With the option diagnose, a unit adds w = ladder.steps = floor(0.22 B), or floor(B/40) in the
** sum norm, once to each of two further counts. The distance is then the root of the sum of the
** squares of the bounds of the three, or the sum of these bounds in the sum norm.
**
** The lattice is that of one release with this clip. In the sum norm it may be finer, like that of
** every vector (design_make()). */
void series_layout(struct layout *shape, const struct series *series, int replace,
                   const struct noise_law *noise);

/* Returns B, the norm that a unit may count from the first to the last period, in fine steps. */
int64_t series_reach(const struct layout *shape);

#endif
