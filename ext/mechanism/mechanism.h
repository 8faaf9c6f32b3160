/*
** mechanism.h: a mechanism is one constant struct of facts and functions, in a file of its own.
**
** A mechanism releases statistics (sums/family.h). Either it adds noise to sums on a lattice, and
** has a noise law; or it draws one of the public categories, and has a category law; or every row
** is reported through a kernel (markov_kernel.h), and it has neither.
*/
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

#include "math/cost.h"
#include "mechanism/noise_law.h"
#include "sums/family.h"

/*
** A draw from public categories: category i has probability in proportion to exp(step utility[i]),
** where step = exponent / 2^CATEGORICAL_SHIFT (noise/categorical.h).
*/
struct tilt {
  uint64_t exponent;
  double epsilon;
};

struct category_law {
  /* What a rate buys; replace: neighbours replace a unit. */
  struct tilt (*tilt)(double rate, int replace);
  /* The Renyi divergence of order alpha that goes with an epsilon. */
  double (*rdp)(double alpha, double epsilon);
  /* Utilities of categories, from how many units have each. */
  void (*utility)(int64_t *utility, const int64_t *counts, size_t count);
};

/* A release that adds noise on a lattice, as its mechanism sees it. */
struct terms {
  const struct layout *shape;
  const struct descent *descent; /* of a model */
  int shift;                     /* its lattice, and the sensitivity there */
  uint64_t sensitivity;
  double rate;  /* the most that it may cost at its tier, ... */
  double delta; /* ... and what it takes of the tier's delta_keys */
};

/* What the curve of a cost reads: it must stay where it is as long as the cost is in use. */
struct cost_room {
  const struct noise_law *noise;
  uint64_t sensitivity, clock;
  double most;             /* the cost is within alpha times this */
  double epsilon;          /* of a random stop */
  struct profile *profile; /* of what public rows hide; owned */
};
void cost_room_clear(struct cost_room *room);

struct design;

struct mechanism {
  const char *name;    /* in the ledger */
  const char *theorem; /* what its cost rests on */
  unsigned statistics; /* those that it can release: bits of enum statistic */
  int shrinks;         /* what is shown shrinks to a centre (Ornstein-Uhlenbeck) */
  int hides;           /* it may cost less than its noise: by public rows or a random stop */
  const struct category_law *category;

  /* Where there is a noise law: */
  const struct noise_law *noise;
  /* The lattice of a new release, and the clock of its point; 0: there is none. */
  uint64_t (*design)(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design);
  /* The least sensitivity that may be charged for on its lattice. */
  uint64_t (*sensitivity)(const struct mechanism *mechanism, const struct terms *terms);
  /* The zCDP rate of a point at a clock, for comparison with the tier's. */
  double (*rate)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock);
  /* The clock of the draw that makes the first point. */
  uint64_t (*draw_clock)(const struct terms *terms, uint64_t clock);
  /* Sets what a point at a clock costs. 1, or 0 without memory. */
  int (*cost)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost);
};

/* These functions of a mechanism that adds noise to sums (noisy_sums.c). */
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

/* The Renyi divergence of the noise that a room describes. */
double noise_curve(const void *room, double alpha);

/* The largest zCDP rate of a release: below it, epsilons of draws without noise are below 600. */
#define CATEGORY_MAX_RATE 500
double mechanism_most_rate(const struct mechanism *mechanism);

/* gaussian.c, laplace.c; exponential.c, randomized_response.c; local_randomisation.c; model.c */
extern const struct mechanism gaussian_mechanism, ou_mechanism, laplace_mechanism;
extern const struct mechanism exponential_mechanism, randomized_response;
extern const struct mechanism local_randomisation;
extern const struct mechanism sgd_gaussian, sgd_laplace, sgd_iteration, sgd_laplace_iteration;

/*
** All mechanisms, null at the end, in the order in which messages list them. The first that admits
** a family is its own mechanism.
*/
extern const struct mechanism *const mechanisms[];

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks);

#endif
