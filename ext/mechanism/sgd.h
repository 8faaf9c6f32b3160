/*
** sgd.h: projected noisy stochastic gradient descent on the release lattice.
**
** Balle, Barthe, Gaboardi and Geumlek 2019, Algorithm 1: every row is read once, in the order in
** which rows come, and moves the coefficients w of a linear model, |w| <= radius:
**
**     M_i = (1 - eta l2) w_{i-1} - eta g_i      exact integers: fine steps, then rounded to the
**     lattice U_i = M_i + noise                         the exact sampler: N_Z(0, variance), or
**                                                       discrete Laplace noise
**     w_i = U_i, projected onto the ball        floating point: it reads U_i alone
**
** g_i is the gradient of the loss of row i, and w_0 = 0. The last M is not noised here: it is what
** a release draws from and stores as its point, U; the projection of U is what people see.
**
** Sensitivity. Given w_{i-1}, replacing row i changes eta g_i alone. It is made to fit a ball of
** radius eta * lipschitz in exact integers (clip.h), so M_i moves by at most twice that
** (sums/layout.h; in the sum norm, for Laplace noise, lattice_design.h), whatever floating
** point did before. Every later step is a function of U_i, of rows that both data sets have, and of
** noise of its own. So a row pays for one draw of its own, and the regularisation, which both data
** sets have, for nothing.
**
** Learning rates may fall from step to step, eta_i = eta/(1 + decay (i - 1))^power. The clip of a
** step and its noise fall with them: with s_i the integer sensitivity of step i, and s, V those of
** the last one, V_i = ceil(V s_i^2/s^2) + 1, or t_i = ceil(t s_i/s) for Laplace noise of scale t.
** So no row moves its step further against its noise than the last one does; Laplace noise on a
** finer lattice is not easier to tell from itself, either.
**
** Requirements:
**   G1  Exactly rows + public_rows steps, or as many as the random stop says, however many rows
**       come: those that are missing have no gradient, those beyond are not looked at.
**   G2  A row whose gradient cannot be computed has none, and takes its step and its noise all the
**       same.
**   G3  Intermediate coefficients and unused noise are wiped.
*/
#ifndef DIFFUSE_MECHANISM_SGD_H
#define DIFFUSE_MECHANISM_SGD_H

#include <stdint.h>

#include "noise/lattice.h"
#include "mechanism/lattice_design.h"
#include "mechanism/mechanism.h"
#include "sums/layout.h"

enum loss { LOSS_LOGISTIC, LOSS_SQUARED, LOSS_HUBER, LOSSES };

/* The public parameters of a model. Numbers that were not given are NaN. */
struct descent {
  enum loss loss;
  double rows, public_rows; /* whole numbers */
  double dim;
  double clip;             /* of the norm of features */
  double radius;           /* of the ball of coefficients */
  double l2;               /* strong convexity: l2/2 |w|^2 is added to the loss of each row */
  double eta, default_eta; /* learning rate; 1 where it was not given but derived */
  double bound;            /* of |y| */
  double threshold;        /* of the Huber loss */
  double lipschitz, beta;  /* of the loss without and with regularisation, derived from the above */
  double random_stop;      /* 1: after a random number of rows */
  double decay, power;     /* of the learning rate; 0: all steps are equal */
  double laplace;          /* 1: Laplace noise */
  double variance;         /* clock of the noise of the last step, in lattice steps: below 2^53 */
};

/* The noise of its steps. */
static inline const struct noise_law *descent_noise_law(const struct descent *descent) {
  return descent->laplace > 0 ? &laplace_noise : &gaussian_noise;
}

/* The mechanism that a release of it has. */
const struct mechanism *descent_mechanism(const struct descent *descent);

/*
** The largest epsilon whose pure mechanisms all have this zCDP rate: epsilon tanh(epsilon/2)
** (response_rdp): that of a random stop.
*/
double pure_epsilon_of_rate(double rate);

/* Bounds on parameters. */
#define SGD_MAX_ROWS     1e9
#define SGD_MAX_PUBLIC   1e6
#define SGD_MAX_RADIUS   0x1p40 /* in lattice steps */
#define SGD_VARIANCE_END 0x1p53
#define SGD_MAX_DECAY    1e6
#define SGD_MAX_STEPS    1e7 /* whose learning rates fall: each is looked at */

/*
** Derives lipschitz and beta. The gradient of a loss without regularisation has a norm of at most
** lipschitz for every w in the ball, every |x| <= clip and |y| <= bound; its Hessian lies between 0
** and beta - l2.
**     logistic  log(1 + e^(-t w.x)), t = 1 for y > 1/2, else -1: lipschitz clip, Hessian to
**               clip^2/4
**     squared   (w.x - y)^2/2: lipschitz clip (radius clip + bound), Hessian to clip^2
**     huber     r^2/2 for |r| = |w.x - y| <= threshold, else threshold (|r| - threshold/2):
**               lipschitz clip times the lesser of threshold and radius clip + bound, Hessian to
**               clip^2
*/
void descent_derive(struct descent *descent);

/* The largest admissible learning rate, 2/(beta + l2). */
double descent_largest_eta(const struct descent *descent);

/*
** What a row moves the coefficients by, at most: eta * lipschitz, the clip of a release that is a
** model.
*/
static inline double descent_step(const struct descent *descent) {
  return descent->eta * descent->lipschitz;
}

/* The Lipschitz constant of the first step, max(|1 - eta l2|, |1 - eta beta|), at most 1. */
double descent_contraction(const struct descent *descent);

/* What step i does, on the lattice of its release. */
struct hop {
  double eta, contraction;
  uint64_t sensitivity, clock;
};

/* The steps of a model, on the lattice that is 2^shift times coarser than that of the shape. */
struct course {
  const struct descent *descent;
  struct layout shape; /* of the first step */
  int shift, granularity;
  double steps;
  struct hop last;
};
void course_make(struct course *course, const struct descent *descent, const struct layout *shape,
                 int shift);

/* Step i, from 1 to steps. */
void course_hop(const struct course *course, double i, struct hop *hop);

/*
** The lattice for a rate, as design_make(): fills a design and sets *variance, that of the noise of
** each step; 0 where there is none. Without public rows a row is charged for its one draw. Public
** rows come last, and their steps hide it further (Balle et al. 2019, Theorem 5, along the best
** path): a step brings two points closer by L, the contraction, or at least no further apart, and
** the noise of each step covers a part of what is left. With a_j of the distance covered by the
** noise of step j after the private row, what is left after the last is
**     T = L^m s + e (1 + L + ... + L^(m-1)) - sum_j L^(m-j) a_j,
** e = 5/2 sqrt(dim) lattice steps for what rounding can add in one step: a part of an integer
** vector is taken towards zero, which leaves up to sqrt(dim) too much; two points that are rounded
** to the lattice move apart by up to sqrt(dim); and floating point errs by less than sqrt(dim)/4 as
** long as the ball has no more than SGD_MAX_RADIUS steps. The shifts are integers, so each costs
** alpha a_j^2/(2 variance) exactly (shift reduction: Feldman et al. 2018; the discrete Gaussian:
** Canonne, Kamath and Steinke 2020, Theorem 4). The best a_j, those with nothing left, are in
** proportion to L^(m-j) and cost T_0^2/(2 clock) with T_0 = T for no a, the sensitivity, and clock
** = variance sum_j L^(2j), j = 0 .. m: as if the last point alone had noise of that variance. Noise
** that dp_diffuse() adds to the last point adds to this clock.
**
** With falling learning rates L and the variance are those of each step, and the last private row
** need not be the worst: the sensitivity is that of the worst one at the clock of the last. Laplace
** noise has no such path: the sensitivity and the clock are those of the last step.
*/
void descent_design(const struct descent *descent, const struct layout *shape, double rate,
                    struct design *design, uint64_t *variance);

/*
** Whether noise on top of the last point, for a clock of `clock`, hides every private row as well
** as the last: T_0^2/(2 clock). The last row has it from the noise of its own step and that on top;
** an earlier one from the steps in between too, but they round. So for each number of steps after a
** row the bound with all of them and the noise on top, or one of those that need no more than the
** first few of them (what comes after is post-processing), must be within that of the last row.
** Renyi bounds: they are no Gaussian profile.
**
** Laplace noise: whether a row may spend nothing of its budget before the last step. In the norm of
** sgd.h's e it is sqrt(dim) times nearer than the sensitivity s says; where L s/sqrt(dim) + 5/4
** sqrt(dim) is no more than s/sqrt(dim), it is never further apart than a row that is replaced
** in the last step, and the widened noise of that step alone hides it as well as that one.
*/
int descent_diffusible(const struct descent *descent, const struct layout *shape, int shift,
                       uint64_t clock);

/* T_0, rounded up, on a lattice that is 2^shift times coarser than the fine one. */
uint64_t descent_sensitivity(const struct descent *descent, const struct layout *shape, int shift);

/*
** rates[i - 1]: a rate that private row number i is protected by, i = 1 .. rows. What comes after
** the steps that hide a row best is post-processing, so it is the least T_0^2/(2 clock) over up to
** rows - i + public_rows steps after it; that of the last row is at most what is charged. With
** falling learning rates some of these numbers of steps are looked at. Gaussian noise.
*/
void descent_rates(const struct descent *descent, const struct layout *shape, int shift,
                   double *rates);

/* The clock of the point that is drawn, rounded down: `variance` where there are no public rows. */
uint64_t descent_clock(const struct descent *descent, const struct layout *shape, int shift);

/*
** An upper bound on the variance that the noise of all steps adds to a coefficient, in lattice
** steps, as the mean over coefficients of the squared distance from the same descent without noise:
** a step and a projection bring two points no further apart, so it is variance * sum over steps of
** contraction^(2j).
*/
double descent_noise(const struct descent *descent, const struct layout *shape, int shift);

/* The derivative of the loss in w.x at this margin. */
double descent_slope(const struct descent *descent, double margin, double y);

/* Scales features to a norm of at most clip; what fits stays. */
void descent_clip(const struct descent *descent, double *features);

/* A point of the lattice 2^granularity Z as coefficients: its projection onto the ball. */
void ball_project(double radius, const int64_t *point, int dim, int granularity, double *w);

struct training;

/*
** Starts with w = 0, and chooses where to stop. The shape is that of a release whose clip is
** descent_step(), on the lattice that `design` says. Null: no memory or random bytes. It keeps
** pointers to all three.
*/
struct training *training_open(const struct descent *descent, const struct layout *shape,
                               const struct design *design);
void training_close(struct training *training);

/*
** One row; features may be null, and then it has no gradient (G2). They must be finite, and are
** clipped in place.
*/
void training_add(struct training *training, double y, double *features);

/*
** Takes the steps that are left (G1) and returns the last M in fine steps, one for each
** coefficient, which the training owns; null where the system gave no random bytes.
*/
int128 *training_totals(struct training *training);

#endif
