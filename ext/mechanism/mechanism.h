/*
** mechanism.h: the mechanisms. Each mechanism is one constant struct of facts and functions.
**
** A mechanism releases statistics (sums/layout.h). A mechanism with a noise law adds noise to sums
** on a lattice. Rooms beside the core have mechanisms without one (categories/) and mechanisms that
** design their lattice in their own way (models/).
*/
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

#include "math/cost.h"
#include "mechanism/noise_law.h"
#include "sums/layout.h"

/* The facts that a mechanism with a noise law needs about a release. */
struct terms {
  const struct layout *shape;
  const void *details; /* what only this kind has (release/procedure.h) */
  /* The sensitivity is on a lattice 2^shift times coarser than the fine lattice. */
  int shift;
  uint64_t sensitivity;
  double rate;  /* the largest rate that the release may cost the tier */
  double delta; /* the part of the tier's delta_keys that this release uses */
};

/*
** The parameters from which the curve of a cost is computed. The cost points to this struct, so the
** struct must exist at the same address as long as the cost is in use.
*/
struct cost_room {
  const struct noise_law *noise;
  uint64_t sensitivity, clock;
  double most;    /* the cost at order alpha is at most alpha times this number */
  double epsilon; /* for a mechanism with a curve of its own */
  void *profile;  /* the same; cost_room_clear() frees it */
};
void cost_room_clear(struct cost_room *room);

struct design;

struct mechanism {
  const char *name;    /* the name that the ledger stores */
  const char *theorem; /* the theorem that proves its cost */
  unsigned statistics; /* the statistics that this mechanism can release: bits of enum statistic */
  int shrinks;         /* published values shrink towards a centre (Ornstein-Uhlenbeck) */
  /* Public rows or a random stop may lower the cost below the cost of the noise. */
  int hides;
  double most; /* the largest zCDP rate of a release without a noise law */

  /* For mechanisms with a noise law: */
  const struct noise_law *noise;
  /*
  ** Designs the lattice of a new release. Returns the clock of its first point, or 0 if no clock is
  ** admissible.
  */
  uint64_t (*design)(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design);
  /* Returns the least sensitivity that the mechanism may charge for on its lattice. */
  uint64_t (*sensitivity)(const struct mechanism *mechanism, const struct terms *terms);
  /*
  ** Returns the zCDP rate of a point at a clock. The caller checks that this rate is at most the
  ** tier's rate.
  */
  double (*rate)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock);
  /* Returns the clock of the draw that makes the first point. */
  uint64_t (*draw_clock)(const struct terms *terms, uint64_t clock);
  /* Sets the cost of a point at a clock. Returns 1, or 0 when out of memory. */
  int (*cost)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost);
};

/* The functions of a mechanism that adds noise to sums. */
uint64_t sums_design(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design);
uint64_t sums_sensitivity(const struct mechanism *mechanism, const struct terms *terms);
double sums_rate(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock);
uint64_t sums_draw_clock(const struct terms *terms, uint64_t clock);
int sums_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost);
#define NOISY_SUMS                                                                                 \
  .design = sums_design, .sensitivity = sums_sensitivity, .rate = sums_rate,                       \
  .draw_clock = sums_draw_clock, .cost = sums_cost

/* Returns the Renyi divergence of the noise that `room` describes. */
double noise_curve(const void *room, double alpha);

/* Returns the largest zCDP rate of a release. */
double mechanism_most_rate(const struct mechanism *mechanism);

/* The ledger has one theorem for all mechanisms with the same name. */
#define GAUSSIAN_THEOREM                                                                           \
  "discrete Gaussian: sensitivity^2 / (2 variance) (Canonne, Kamath and Steinke 2020, Theorem 4);" \
  " charged as sensitivity^2 / (2 (variance - 1/12))"
#define LAPLACE_THEOREM                                                                            \
  "discrete Laplace: the Renyi divergence of its exact law; pure epsilon sensitivity / scale"

/* The mechanisms of gaussian.c and laplace.c. */
extern const struct mechanism gaussian_mechanism, ou_mechanism, laplace_mechanism;

/*
** Returns the family whose vectors suit the mechanism: `family` itself, its member l1 for noise in
** the sum norm, or its member `drawn` for a mechanism that draws a bin.
*/
const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family);

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks);

#endif
