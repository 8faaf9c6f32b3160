/*
** mechanism.h: the mechanisms. Each mechanism is one constant struct of facts and functions.
**
** A mechanism releases statistics (sums/family.h). There are three sorts of mechanisms. A mechanism
** with a noise law adds noise to sums on a lattice. A mechanism with a category law draws one of
** the public categories. A mechanism with neither law randomises every row by a kernel
** (markov_kernel.h).
*/
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

#include "math/cost.h"
#include "mechanism/noise_law.h"
#include "sums/family.h"

/*
** A draw of one of the public categories. The probability of category i is proportional to exp(step
** utility[i]), where step = exponent / 2^CATEGORICAL_SHIFT (noise/categorical.h).
*/
struct tilt {
  uint64_t exponent;
  double epsilon; /* the argument of rdp() in struct category_law */
};

struct category_law {
  /*
  ** Returns the tilt of a draw whose cost is at most `rate`. If `replace` is true, neighbours
  ** differ by the replacement of a unit. Otherwise they differ by adding or removing a unit.
  */
  struct tilt (*tilt)(double rate, int replace);
  /* Returns the Renyi divergence of order alpha of a draw with this epsilon. */
  double (*rdp)(double alpha, double epsilon);
  /* Computes the utility of each category from the number of units that have the category. */
  void (*utility)(int64_t *utility, const int64_t *counts, size_t count);
};

/* The facts that a mechanism with a noise law needs about a release. */
struct terms {
  const struct layout *shape;
  const struct descent *descent; /* the parameters of a model */
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
  double most;             /* the cost at order alpha is at most alpha times this number */
  double epsilon;          /* epsilon of a random stop */
  struct profile *profile; /* profile of a model with public rows; cost_room_clear() frees it */
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
  const struct category_law *category;

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

/* The functions of a mechanism that adds noise to sums (noisy_sums.c). */
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

/*
** mechanism_most_rate() returns the largest zCDP rate of a release. For the draw of a category this
** is CATEGORY_MAX_RATE, at which the epsilon of the draw is below 600.
*/
#define CATEGORY_MAX_RATE 500
double mechanism_most_rate(const struct mechanism *mechanism);

/*
** The mechanisms, defined in gaussian.c, laplace.c, exponential.c, randomized_response.c,
** local_randomisation.c and model.c.
*/
extern const struct mechanism gaussian_mechanism, ou_mechanism, laplace_mechanism;
extern const struct mechanism exponential_mechanism, randomized_response;
extern const struct mechanism local_randomisation;
extern const struct mechanism sgd_gaussian, sgd_laplace, sgd_iteration, sgd_laplace_iteration;

/*
** All mechanisms, ending with null, in the order in which messages list them. The default mechanism
** of a family is the first one that admits the family.
*/
extern const struct mechanism *const mechanisms[];

/*
** Returns the family whose vectors suit the norm of the mechanism's noise: `family` itself, or its
** member l1 for the sum norm.
*/
const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family);

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks);

#endif
