/*
** mechanism.h: a mechanism is one constant struct of facts and functions, in a file of its own.
**
** A mechanism releases statistics (sums/family.h). Either it adds noise to sums on a lattice, and
** has a noise law; or it draws one of the public categories, and has a category law; or every row
** is reported through a kernel (markov_kernel.h), and it has neither.
*/
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

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

struct mechanism {
  const char *name;    /* in the ledger */
  const char *theorem; /* what its cost rests on */
  unsigned statistics; /* those that it can release: bits of enum statistic */
  int shrinks;         /* what is shown shrinks to a centre (Ornstein-Uhlenbeck) */
  const struct noise_law *noise;
  const struct category_law *category;
};

/* The largest zCDP rate of a release: below it, epsilons of draws without noise are below 600. */
#define CATEGORY_MAX_RATE 500
double mechanism_most_rate(const struct mechanism *mechanism);

/* gaussian.c, laplace.c; exponential.c, randomized_response.c; local_randomisation.c; sgd.c */
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
