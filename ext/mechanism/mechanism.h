/*
** mechanism.h: a mechanism is one constant struct of facts and functions, in a file of its own.
**
** A mechanism releases statistics (sums/family.h). There are three sorts. A mechanism with a noise
** law adds noise to sums on a lattice. A mechanism with a category law draws one of the public
** categories. A mechanism with neither randomises every row through a kernel (markov_kernel.h).
*/
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

#include "math/cost.h"
#include "mechanism/noise_law.h"
#include "sums/family.h"

/*
** A draw from public categories. Category i has a probability in proportion to exp(step
** utility[i]), where step = exponent / 2^CATEGORICAL_SHIFT (noise/categorical.h).
*/
struct tilt {
  uint64_t exponent;
  double epsilon;
};

struct category_law {
  /* Returns the draw that a rate pays for. replace: neighbours replace a unit. */
  struct tilt (*tilt)(double rate, int replace);
  /* Returns the Renyi divergence of order alpha for an epsilon. */
  double (*rdp)(double alpha, double epsilon);
  /* Computes the utilities of categories from the number of units that have each. */
  void (*utility)(int64_t *utility, const int64_t *counts, size_t count);
};

/* A release that adds noise on a lattice: the facts that its mechanism needs. */
struct terms {
  const struct layout *shape;
  const struct descent *descent; /* of a model */
  int shift;                     /* the lattice of the sensitivity */
  uint64_t sensitivity;
  double rate;  /* the largest cost at its tier */
  double delta; /* the part of the tier's delta_keys that it uses */
};

/* The parameters of a cost's curve. They must stay in place as long as the cost is in use. */
struct cost_room {
  const struct noise_law *noise;
  uint64_t sensitivity, clock;
  double most;             /* the cost is at most alpha times this */
  double epsilon;          /* of a random stop */
  struct profile *profile; /* the profile that public rows give; owned */
};
void cost_room_clear(struct cost_room *room);

struct design;

struct mechanism {
  const char *name;    /* in the ledger */
  const char *theorem; /* the theorem that proves its cost */
  unsigned statistics; /* the statistics that it can release: bits of enum statistic */
  int shrinks;         /* published values shrink to a centre (Ornstein-Uhlenbeck) */
  int hides;           /* public rows or a random stop may make it cheaper than its noise */
  const struct category_law *category;

  /* For mechanisms with a noise law: */
  const struct noise_law *noise;
  /* Designs the lattice of a new release. Returns the clock of its point; 0: there is none. */
  uint64_t (*design)(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design);
  /* Returns the least sensitivity that the mechanism may charge for on its lattice. */
  uint64_t (*sensitivity)(const struct mechanism *mechanism, const struct terms *terms);
  /* Returns the zCDP rate of a point at a clock, to compare with the tier's rate. */
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

/* The largest zCDP rate of a release. Below it, the epsilons of category draws are below 600. */
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

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks);

#endif
