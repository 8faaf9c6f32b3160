/*
** lattice_design.h: designs the lattice of a release and draws its points.
**
** Only public parameters determine the lattice: the clipping norm, the requested rate and the
** adjacency (whether neighbours differ by adding or by replacing a unit). A point is the totals of
** a release plus noise, on the lattice. A path is the sequence of points of one release, ordered by
** their clocks (noise_law.h). The innermost point has the least noise. A step outward adds noise to
** the outermost point and does not read the data. A step inward averages the innermost point with
** one fresh draw. This code does not depend on SQL, tables or budgets.
*/
#ifndef DIFFUSE_MECHANISM_LATTICE_DESIGN_H
#define DIFFUSE_MECHANISM_LATTICE_DESIGN_H

#include <stddef.h>
#include <stdint.h>

#include "mechanism/noise_law.h"
#include "sums/layout.h"
#include "sums/scalar_sum.h"

/* The lattice of one release. */
struct design {
  int granularity; /* the release lattice is 2^granularity Z */
  int shift;       /* contributions are summed on a lattice 2^shift times finer */
  /* Sensitivity of the rounded totals, in release steps; the ledger charges for it. */
  uint64_t sensitivity;
};

/*
** Bounds on rates. Outside these bounds, or above the noise law's own limit `most`, doubles cannot
** represent the lattice.
*/
#define DESIGN_MIN_RATE 1e-12
#define DESIGN_MAX_RATE 1e6

/*
** Fills a design for vectors of this layout that are released at `rate`. The rate must be inside
** the bounds above.
**
** The totals of neighbouring data sets differ by at most `distance` on the fine lattice, in at most
** `touched` coordinates (struct layout). Rounding to the release lattice adds at most one step to
** each coordinate (noise/lattice.h), so rounding adds at most sqrt(touched) steps to the distance.
** In the sum norm, rounding adds up to `touched` steps. For this norm, design_make() makes the
** lattice finer, by a factor of up to 2^6, until these steps are below 1/64 of the sensitivity. For
** cross tables whose neighbours can differ in more than 4096 coordinates, the lattice is finer by a
** factor of up to 2^4: otherwise, at a rate of 1e-5, rounding 124,601 coordinates would add 4% to
** the noise, and the slack of the accountant 'gdp' would take a large part of a budget.
*/
void design_make(struct design *design, const struct layout *shape, double rate,
                 const struct noise_law *noise);

/*
** Returns the integer sensitivity on a lattice that is 2^shift times coarser than the fine lattice.
** For Gaussian noise, the sensitivity is in the Euclidean norm. For Laplace noise, the sensitivity
** is in the sum norm. If the family has no vectors for the sum norm, the function computes the
** sensitivity from the Euclidean norm, because the sum norm is at most sqrt(touched) times the
** Euclidean norm. Rounding adds at most one step for each touched coordinate.
*/
uint64_t design_sensitivity(const struct layout *shape, int shift, const struct noise_law *noise);

/* Returns the bounds on the contributions to a single number. */
struct bounds design_bounds(const struct layout *shape);

/*
** Returns the variance at which a Gaussian release of this sensitivity costs at most `rate`, or 0
** if no variance is admissible.
*/
uint64_t design_variance(uint64_t sensitivity, double rate);

/*
** For Gaussian noise: returns the variance of the next point inward from a point of variance
** `outer`, for a tier of rate `rate`. Sets *fresh to the variance of the draw that produces this
** point. If the variance of the new point would be almost equal to `outer`, the draw would need too
** large a variance. The function then returns `outer` and sets *fresh to 0: the tier gets the outer
** point itself, which has a little more noise than the tier's rate requires. Returns 0 if the
** variance would be too small for the lattice.
*/
uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh);

/*
** Sets values to totals plus noise of clock `clock`. This function and the next two functions
** return 1, or 0 if the system provides no random bytes. The arrays must not overlap.
*/
int release_draw(const struct noise_law *noise, const int64_t *restrict totals, size_t dimension,
                 uint64_t clock, int64_t *restrict values);

/*
** Sets `to` to the point `from` plus noise that raises the clock from `inner` to `outer`. This step
** is the semigroup P_s of Balle et al. 2019. Apart from the point, the function reads no data.
*/
int release_diffuse(const struct noise_law *noise, const int64_t *restrict from, size_t dimension,
                    uint64_t inner, uint64_t outer, int64_t *restrict to);

/*
** For Gaussian noise: refines the point `from` of variance `outer` to variance `inner` with one
** draw of variance `fresh`, and stores the new point in `to`.
*/
int release_refine(const int64_t *restrict from, const int64_t *restrict totals, size_t dimension,
                   uint64_t inner, uint64_t outer, uint64_t fresh, int64_t *restrict to);

#endif
