/*
** noise_law.h: noise distributions on the lattice. A noise law has functions for the width and the
** cost of the noise, for draws, and for steps to a larger clock.
**
** A release can have several points, one for each tier. A point is the exact totals plus noise, and
** the points of a release form a path (lattice_design.h). The clock of a point is the variance of
** its noise in squared lattice steps. For Laplace noise, the clock is the integer nearest to this
** variance. The rate of a tier is the largest zCDP rate that a release may cost there.
** gaussian_noise.c and laplace.c define the two noise laws. Several mechanisms can share one noise
** law.
*/
#ifndef DIFFUSE_MECHANISM_NOISE_LAW_H
#define DIFFUSE_MECHANISM_NOISE_LAW_H

#include <stddef.h>
#include <stdint.h>

/* The clocks of a new point and of its neighbours on the path. */
struct gap {
  uint64_t inner, clock, outer;
};

/* draw(), step() and between() return 1, or 0 when the system gave no random bytes. */
struct noise_law {
  const char *name; /* the name in messages */
  double most;      /* the largest rate for which doubles can represent the lattice */
  /*
  ** in_sum_norm: sensitivities are in the sum norm, not in the Euclidean norm. refines: a point can
  ** be refined inward (lattice_design.h). has_rate: the ledger charges a rate, not a curve.
  */
  int in_sum_norm, refines, has_rate;
  /*
  ** Returns the width (scale or standard deviation) of continuous noise that costs `rate` if the
  ** sensitivity is 1.
  */
  double (*width)(double rate);
  /*
  ** Returns the least clock at which a release of this sensitivity costs at most `rate`, or 0 if no
  ** clock is admissible.
  */
  uint64_t (*clock)(uint64_t sensitivity, double rate);
  /* Returns the cost of a release of this sensitivity at a clock, as a zCDP rate, rounded up. */
  double (*rate)(uint64_t sensitivity, uint64_t clock);
  /*
  ** Returns the cost of a release of this sensitivity at a clock as a Renyi divergence of order
  ** alpha. Order infinity gives the epsilon of pure DP.
  */
  double (*rdp)(uint64_t sensitivity, uint64_t clock, double alpha);
  /*
  ** Returns the clock of the next point outward from a point of clock `inner`, for a tier of rate
  ** `rate`. Returns 0 if this clock would be too large.
  */
  uint64_t (*outward)(uint64_t sensitivity, double rate, uint64_t inner);
  /*
  ** draw() draws independent noise of clock `clock`. step() draws the noise that raises the clock
  ** of a point from `inner` to `outer`.
  */
  int (*draw)(uint64_t clock, int64_t *noise, size_t count);
  int (*step)(uint64_t inner, uint64_t outer, int64_t *noise, size_t count);
  /*
  ** between() draws a point between its neighbours `inner` and `outer`, which were drawn outward.
  ** The new point has the conditional distribution that it would have if the whole path had been
  ** drawn outward (noise/noise.h). The array `values` must not
  ** overlap the other arrays. least_between is the least distance between the new clock and the
  ** outer clock. The clocks that outward() returns keep this distance from the inner clock.
  */
  int (*between)(const struct gap *gap, const int64_t *inner, const int64_t *outer, int64_t *values,
                 size_t count);
  uint64_t least_between;
  /*
  ** These functions return the lattice slack (math/gaussian.h) of a draw, of a step outward and of
  ** a point between two others, rounded up.
  */
  double (*draw_slack)(uint64_t clock, int dimension);
  double (*step_slack)(uint64_t inner, uint64_t outer, int dimension);
  double (*between_slack)(const struct gap *gap, int dimension);
  /*
  ** Returns the half-width of the central interval that contains the noise with probability
  ** `confidence`, which is in (0, 1).
  */
  double (*half_width)(double stddev, double confidence);
  /*
  ** Returns a number q of lattice steps. The sum of `terms` independent draws of noise with this
  ** clock exceeds q + 2 * terms with at most this probability. 1 <= terms <= 3, 0 < probability <=
  ** 1/2.
  */
  double (*tail)(uint64_t clock, int terms, double probability);
  /*
  ** Returns the logarithm of the probability that one draw exceeds x standard deviations, for the
  ** continuous distribution.
  */
  double (*log_tail)(double x);
};

/*
** Returns the half-width for a number that depends on several draws. The result is the larger of
** two half-widths: that of this noise law and that of Gaussian noise. The distribution of a
** weighted sum of draws lies between these two.
*/
double mixed_half_width(const struct noise_law *noise, double stddev, double confidence);

/*
** Discrete Gaussian noise N_Z(0, clock). The Ornstein-Uhlenbeck mechanism also uses this noise law.
*/
extern const struct noise_law gaussian_noise;

/*
** Discrete Laplace noise of scale t. Its variance is 1/(cosh(1/t) - 1), and its clock 2 t^2 is the
** integer nearest to the variance.
*/
extern const struct noise_law laplace_noise;

/* Returns the scale of Laplace noise at a clock. */
uint64_t laplace_scale(uint64_t clock);

#endif
