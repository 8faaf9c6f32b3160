/*
** sgd.h: projected noisy stochastic gradient descent on the release lattice.
**
** The algorithm is Algorithm 1 of Balle, Barthe, Gaboardi and Geumlek 2019. It reads every row
** once, in the order in which rows arrive. Each row moves the coefficients w of a linear model,
** where |w| <= radius:
**
**     M_i = (1 - eta l2) w_{i-1} - eta g_i   exact integers: fine steps, rounded to the lattice
**     U_i = M_i + noise                      exact sampler: N_Z(0, variance) or discrete Laplace
**     w_i = U_i, projected onto the ball     floating point: it reads U_i alone
**
** g_i is the gradient of the loss of row i, and w_0 = 0. This file adds no noise to the last M. The
** release draws from the last M and stores the result, U, as its point. The published coefficients
** are the projection of U.
**
** Sensitivity. Given w_{i-1}, replacing row i changes eta g_i alone. clip.h clips eta g_i to a ball
** of radius eta * lipschitz in exact integers. M_i therefore moves by at most twice that radius,
** whatever floating point did before (sums/layout.h; lattice_design.h for the sum norm of Laplace
** noise). Every later step is a function of U_i, of rows that both data sets share, and of its own
** noise. A row therefore pays for one draw, its own. It pays nothing for the regularisation, which
** both data sets share.
**
** Learning rates may fall from step to step: eta_i = eta/(1 + decay (i - 1))^power. The clip and
** the noise of a step fall with them. Let s_i be the integer sensitivity of step i, and s and V the
** sensitivity and the variance of the last step. Then V_i = ceil(V s_i^2/s^2) + 1, or t_i = ceil(t
** s_i/s) for Laplace noise of scale t. No row therefore moves its step further against its noise
** than the last row does. For Laplace noise, a finer lattice does not make two shifted copies
** easier to distinguish, either.
**
** Requirements:
**   G1  The descent takes exactly rows + public_rows steps, or as many as the random stop says,
**       however many rows arrive. Missing rows have no gradient. Surplus rows are not read.
**   G2  A row whose gradient cannot be computed has none. It still takes its step and its noise.
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

/* The public parameters of a model. NaN marks a number that was not given. */
struct descent {
  enum loss loss;
  double rows, public_rows; /* whole numbers */
  double dim;
  double clip;             /* bounds the norm of the features */
  double radius;           /* of the ball that holds the coefficients */
  double l2;               /* strong convexity: l2/2 |w|^2 is added to the loss of each row */
  double eta, default_eta; /* learning rate; default_eta is 1 if it was derived */
  double bound;            /* bounds |y| */
  double threshold;        /* of the Huber loss */
  double lipschitz, beta;  /* of the loss without and with regularisation; derived */
  double random_stop;      /* 1: stop after a random number of rows */
  double decay, power;     /* of the learning rate; 0: all steps are equal */
  double laplace;          /* 1: Laplace noise */
  double variance;         /* clock of the last step's noise, in lattice steps: below 2^53 */
};

/* Returns the noise law of its steps. */
static inline const struct noise_law *descent_noise_law(const struct descent *descent) {
  return descent->laplace > 0 ? &laplace_noise : &gaussian_noise;
}

/* Returns the mechanism of its release. */
const struct mechanism *descent_mechanism(const struct descent *descent);

/*
** Returns the largest epsilon for which all epsilon-DP mechanisms have this zCDP rate: it solves
** epsilon tanh(epsilon/2) = rate (response_rdp). A random stop uses this epsilon.
*/
double pure_epsilon_of_rate(double rate);

/* Bounds on parameters. */
#define SGD_MAX_ROWS     1e9
#define SGD_MAX_PUBLIC   1e6
#define SGD_MAX_RADIUS   0x1p40 /* in lattice steps */
#define SGD_VARIANCE_END 0x1p53
#define SGD_MAX_DECAY    1e6
#define SGD_MAX_STEPS    1e7 /* with falling learning rates: each step is examined */

/*
** Derives lipschitz and beta. The gradient of a loss without regularisation has a norm of at most
** lipschitz for every w in the ball, every |x| <= clip and |y| <= bound. Its Hessian lies between 0
** and beta - l2.
**     logistic  log(1 + e^(-t w.x)), t = 1 for y > 1/2, else -1: lipschitz clip, Hessian to
**               clip^2/4
**     squared   (w.x - y)^2/2: lipschitz clip (radius clip + bound), Hessian to clip^2
**     huber     r^2/2 for |r| = |w.x - y| <= threshold, else threshold (|r| - threshold/2):
**               lipschitz clip times the lesser of threshold and radius clip + bound, Hessian to
**               clip^2
*/
void descent_derive(struct descent *descent);

/* Returns the largest admissible learning rate, 2/(beta + l2). */
double descent_largest_eta(const struct descent *descent);

/*
** Returns the largest distance by which a row moves the coefficients: eta * lipschitz. It is the
** clip of a release of a model.
*/
static inline double descent_step(const struct descent *descent) {
  return descent->eta * descent->lipschitz;
}

/*
** Returns the Lipschitz constant of the first step, max(|1 - eta l2|, |1 - eta beta|), at most 1.
*/
double descent_contraction(const struct descent *descent);

/* Step i on the lattice of its release. */
struct hop {
  double eta, contraction;
  uint64_t sensitivity, clock;
};

/* The steps of a model, on a lattice that is 2^shift times coarser than that of the shape. */
struct course {
  const struct descent *descent;
  struct layout shape; /* of the first step */
  int shift, granularity;
  double steps;
  struct hop last;
};
void course_make(struct course *course, const struct descent *descent, const struct layout *shape,
                 int shift);

/* Computes step i, from 1 to steps. */
void course_hop(const struct course *course, double i, struct hop *hop);

/*
** Designs the lattice for a rate, as design_make() does. Fills a design and sets *variance to the
** variance of each step's noise, or to 0 if there is no such lattice.
**
** Without public rows, a row is charged for its one draw. Public rows come last, and their steps
** hide private rows further (Balle et al. 2019, Theorem 5, along the best path). Each step brings
** two points closer by the factor L, the contraction, or at least no further apart. The noise of
** each step covers a part of the remaining distance. Let a_j be the distance that the noise of step
** j after the private row covers. The distance that remains after the last step is
**     T = L^m s + e (1 + L + ... + L^(m-1)) - sum_j L^(m-j) a_j.
** Here e = 5/2 sqrt(dim) lattice steps bounds what rounding can add in one step. It has three
** parts. A part of an integer vector is rounded towards zero, which leaves up to sqrt(dim) too
** much. Two points that are rounded to the lattice move apart by up to sqrt(dim). The error of
** floating point is less than sqrt(dim)/4 as long as the radius of the ball is at most
** SGD_MAX_RADIUS lattice steps.
**
** The shifts are integers, so each costs alpha a_j^2/(2 variance) exactly (shift reduction: Feldman
** et al. 2018; discrete Gaussian: Canonne, Kamath and Steinke 2020, Theorem 4). The best a_j leave
** no distance. They are in proportion to L^(m-j) and cost T_0^2/(2 clock). T_0, the sensitivity, is
** T with all a_j = 0, and clock = variance sum_j L^(2j), j = 0 .. m. The cost is the same as if the
** last point alone had noise of that variance. Noise that dp_diffuse() adds to the last point adds
** to this clock.
**
** With falling learning rates, L and the variance are those of each step. The last private row need
** not be the worst, so the sensitivity is that of the worst row at the clock of the last row.
** Laplace noise has no such path: the sensitivity and the clock are those of the last step.
*/
void descent_design(const struct descent *descent, const struct layout *shape, double rate,
                    struct design *design, uint64_t *variance);

/*
** Checks that additional noise on the last point, which makes its clock `clock`, hides every
** private row as well as the last one: T_0^2/(2 clock). The noise of its own step and the
** additional noise hide the last row. The steps in between also hide an earlier row, but each of
** them rounds. For each number of steps after a row, one of two bounds must therefore be within the
** bound of the last row. The first bound uses all steps and the additional noise. The second uses
** only the first few steps, because everything after them is post-processing. These are Renyi
** bounds, not Gaussian profiles.
**
** Laplace noise: checks that no row needs noise from before the last step. In the norm of e (see
** above), a row moves its step by at most s/sqrt(dim), where s is the sensitivity. If L s/sqrt(dim)
** + 5/4 sqrt(dim) is at most s/sqrt(dim), an earlier row never moves the last step further than a
** row that is replaced in the last step. The widened noise of the last step alone then hides the
** earlier row as well as the last one.
*/
int descent_diffusible(const struct descent *descent, const struct layout *shape, int shift,
                       uint64_t clock);

/* Returns T_0, rounded up, on a lattice that is 2^shift times coarser than the fine one. */
uint64_t descent_sensitivity(const struct descent *descent, const struct layout *shape, int shift);

/*
** Sets rates[i - 1] to a rate that protects private row i, i = 1 .. rows. The steps after those
** that hide a row best are post-processing. The rate is therefore the least T_0^2/(2 clock) over up
** to rows - i + public_rows steps after the row. The rate of the last row is at most the charged
** rate. With falling learning rates, the function examines only some of these numbers of steps. For
** Gaussian noise.
*/
void descent_rates(const struct descent *descent, const struct layout *shape, int shift,
                   double *rates);

/* Returns the clock of the drawn point, rounded down; without public rows it is `variance`. */
uint64_t descent_clock(const struct descent *descent, const struct layout *shape, int shift);

/*
** Returns an upper bound on the variance that the noise of all steps adds to a coefficient, in
** lattice steps. It bounds the mean over coefficients of the squared distance from the same descent
** without noise. A step and a projection bring two points no further apart, so the bound is
** variance * sum over steps of contraction^(2j).
*/
double descent_noise(const struct descent *descent, const struct layout *shape, int shift);

/* Returns the derivative of the loss in w.x at this margin. */
double descent_slope(const struct descent *descent, double margin, double y);

/* Scales features to a norm of at most clip. Features within the clip stay as they are. */
void descent_clip(const struct descent *descent, double *features);

/*
** Projects a point of the lattice 2^granularity Z onto the ball. The result w is the coefficients.
*/
void ball_project(double radius, const int64_t *point, int dim, int granularity, double *w);

struct training;

/*
** Starts with w = 0 and chooses the stop. The shape is that of a release whose clip is
** descent_step(), on the lattice of `design`. The training keeps pointers to all three arguments.
** Returns null without memory or random bytes.
*/
struct training *training_open(const struct descent *descent, const struct layout *shape,
                               const struct design *design);
void training_close(struct training *training);

/*
** Adds one row. If features is null, the row has no gradient (G2). Otherwise features must be
** finite; the function clips them in place.
*/
void training_add(struct training *training, double y, double *features);

/*
** Takes the remaining steps (G1). Returns the last M in fine steps, one number for each
** coefficient; the training owns them. Returns null if the system gave no random bytes.
*/
int128 *training_totals(struct training *training);

#endif
