/*
** lattice_design.h: what a release is, between its public parameters and its published numbers.
**
** The lattice is fixed by public parameters alone: the clipping norm, the rate asked for and the
** adjacency. A path is a sequence of points on one clock (noise_law.h); a step outward adds noise
** to the last point (the data is out of reach), a step inward averages the innermost point with one
** fresh draw. Knows nothing of SQL, of tables or of budgets.
*/
#ifndef DIFFUSE_RELEASE_H
#define DIFFUSE_RELEASE_H

#include <stddef.h>
#include <stdint.h>

#include "mechanism/noise_law.h"
#include "sums/layout.h"
#include "sums/scalar_sum.h"

/* The lattice of one release. */
struct design {
  int granularity;      /* the release lattice is 2^granularity Z */
  int shift;            /* contributions are summed on one that is 2^shift times finer */
  uint64_t sensitivity; /* of the rounded totals, in release steps: what is charged */
};

/* Bounds on rates; outside them, or beyond `most` of the noise, there is no lattice in doubles. */
#define DESIGN_MIN_RATE 1e-12
#define DESIGN_MAX_RATE 1e6

/*
** Fills a design for vectors of this shape released at `rate`, inside the bounds above.
**
** The totals of neighbours are at most `distance` apart on the fine lattice, in at most `touched`
** coordinates. Rounding to the release lattice adds at most one step to each (lattice.h), so at
** most sqrt(touched) steps to the distance.
*/
void design_make(struct design *design, const struct layout *shape, double rate,
                 const struct noise_law *noise);

/*
** The integer sensitivity on a lattice that is 2^shift times coarser than the fine one: for
** Gaussian noise in the Euclidean norm, for Laplace noise in the sum norm, which is at most
** sqrt(touched) times that before rounding, and one step more for each coordinate after.
*/
uint64_t design_sensitivity(const struct layout *shape, int shift, const struct noise_law *noise);

/* What bounds the contributions to a single number. */
struct bounds design_bounds(const struct layout *shape);

/*
** Variance at which a Gaussian release of this sensitivity costs at most `rate`; 0 where none is
** admissible.
*/
uint64_t design_variance(uint64_t sensitivity, double rate);

/*
** Gaussian: variance of the next point inward from `outer` for a tier of rate `rate`, and in *fresh
** that of the draw that gets there. Where the two are so close that the draw would leave the
** lattice, the point is the outer one itself (*fresh = 0), which is a little noisier than the tier
** would allow. Returns 0 where the variance would be too small for the lattice.
*/
uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh);

/*
** values = totals + noise of the clock. These three return 1, or 0 when the system gave
** no random bytes. Their arrays must not overlap.
*/
int release_draw(const struct noise_law *noise, const int64_t *restrict totals, size_t dimension,
                 uint64_t clock, int64_t *restrict values);

/*
** to = from + what widens the noise from one clock to another: the semigroup P_s, from the point
** alone.
*/
int release_diffuse(const struct noise_law *noise, const int64_t *restrict from, size_t dimension,
                    uint64_t inner, uint64_t outer, int64_t *restrict to);

/*
** Gaussian: to = refinement of `from` (variance outer) to variance inner with one draw of variance
** fresh.
*/
int release_refine(const int64_t *restrict from, const int64_t *restrict totals, size_t dimension,
                   uint64_t inner, uint64_t outer, uint64_t fresh, int64_t *restrict to);

#endif
