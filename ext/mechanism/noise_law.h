/*
** noise_law.h: a noise distribution on the lattice: how wide it is, what it costs, how it is drawn,
** how it gets wider.
**
** A point of a path is at a clock, the variance of its noise in lattice steps. The two noise laws
** are in gaussian.c and laplace.c. Several mechanisms can share one noise law.
*/
#ifndef DIFFUSE_MECHANISM_NOISE_LAW_H
#define DIFFUSE_MECHANISM_NOISE_LAW_H

#include <stddef.h>
#include <stdint.h>

/* draw() and step() return 1, or 0 when the system gave no random bytes. */
struct noise_law {
  const char *name; /* in messages */
  double most;      /* the largest rate at which there is a lattice in doubles */
  /*
  ** Sensitivities are in the sum norm, not the Euclidean one; refinements exist (lattice_design.h);
  ** dp_plan() solves its half-width for the weight; the ledger is charged by a rate, not a curve.
  */
  int in_sum_norm, refines, solves_width, has_rate;
  /* Noise, as a scale or a standard deviation, that costs `rate` at distance 1 in the continuum. */
  double (*width)(double rate);
  /*
  ** Least clock at which a release of this sensitivity costs at most `rate`; 0 where none is
  ** admissible.
  */
  uint64_t (*clock)(uint64_t sensitivity, double rate);
  /* What a release of this sensitivity costs at a clock, as a zCDP rate, rounded up. */
  double (*rate)(uint64_t sensitivity, uint64_t clock);
  /* The same as a Renyi divergence of order alpha; infinite order: pure differential privacy. */
  double (*rdp)(uint64_t sensitivity, uint64_t clock, double alpha);
  /* Clock of the next point outward from `inner` for a tier of rate `rate`; 0: beyond the path. */
  uint64_t (*outward)(uint64_t sensitivity, double rate, uint64_t inner);
  /* Independent noise of a clock; and what makes that of one clock into that of another. */
  int (*draw)(uint64_t clock, int64_t *noise, size_t count);
  int (*step)(uint64_t inner, uint64_t outer, int64_t *noise, size_t count);
  /* Lattice slack (math/gaussian.h), rounded up: of a draw, and of a step outward. */
  double (*draw_slack)(uint64_t clock, int dimension);
  double (*step_slack)(uint64_t inner, uint64_t outer, int dimension);
  /* Half-width of the central interval that holds the noise with this confidence, in (0, 1). */
  double (*half_width)(double stddev, double confidence);
};

/* N_Z(0, clock). Also that of the Ornstein-Uhlenbeck mechanism, which shrinks what it shows. */
extern const struct noise_law gaussian_noise;

/* Discrete Laplace of scale t, clock = 2 t^2: its variance, 1/(cosh(1/t) - 1), to nearest. */
extern const struct noise_law laplace_noise;

/* The scale of Laplace noise at a clock. */
uint64_t laplace_scale(uint64_t clock);

#endif
