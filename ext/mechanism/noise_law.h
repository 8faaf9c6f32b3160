/*
** noise_law.h: the law of a release's noise: how wide it is, how it is drawn, how it gets wider.
**
** A point of a path is at a clock, the variance of its noise in lattice steps:
**   LAW_GAUSSIAN     N_Z(0, clock). Also that of the Ornstein-Uhlenbeck mechanism, which shrinks
**                    what it shows.
**   LAW_LAPLACE      discrete Laplace of scale t, clock = 2 t^2: its variance, 1/(cosh(1/t) - 1),
**                    to nearest.
** Releases of a symbol have no lattice:
**   LAW_EXPONENTIAL  the exponential mechanism
**   LAW_RESPONSE     randomized response
**   LAW_LOCAL        a kernel that is applied to every row
*/
#ifndef DIFFUSE_MECHANISM_NOISE_LAW_H
#define DIFFUSE_MECHANISM_NOISE_LAW_H

#include <stddef.h>
#include <stdint.h>

enum law { LAW_GAUSSIAN, LAW_LAPLACE, LAW_EXPONENTIAL, LAW_RESPONSE, LAW_LOCAL };

/* What laws with a lattice do. Draws return 0, or -1 when the system gave no entropy. */
struct lattice_law {
  double most; /* the largest rate at which there is a lattice in doubles */
  /* Noise, as a scale or a standard deviation, that costs `rate` at distance 1 in the continuum. */
  double (*width)(double rate);
  /*
  ** Least clock at which a release of this sensitivity costs at most `rate`; 0 where none is
  ** admissible.
  */
  uint64_t (*clock)(uint64_t sensitivity, double rate);
  /* What a release of this sensitivity costs at a clock, as a zCDP rate, rounded up. */
  double (*rate)(uint64_t sensitivity, uint64_t clock);
  /* Clock of the next point outward from `inner` for a tier of rate `rate`; 0: beyond the path. */
  uint64_t (*outward)(uint64_t sensitivity, double rate, uint64_t inner);
  /* Independent noise of a clock; and what makes that of one clock into that of another. */
  int (*draw)(uint64_t clock, int64_t *noise, size_t count);
  int (*step)(uint64_t inner, uint64_t outer, int64_t *noise, size_t count);
  /* Lattice slack (gaussian.h), rounded up: of a draw, and of a step outward. */
  double (*draw_slack)(uint64_t clock, int dimension);
  double (*step_slack)(uint64_t inner, uint64_t outer, int dimension);
};

/* Of LAW_GAUSSIAN and LAW_LAPLACE. */
extern const struct lattice_law lattice_laws[];

/* The scale of Laplace noise at a clock. */
uint64_t laplace_scale(uint64_t clock);

/* Whether a law is one of symbols: drawn, or counted. */
static inline int law_is_symbolic(enum law law) {
  return law >= LAW_EXPONENTIAL;
}

#endif
