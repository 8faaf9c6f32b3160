/* models.h: the room of dp_sgd: the noisy descent, what its later steps hide, and the release of a
** model. */
#ifndef DIFFUSE_MODELS_MODELS_H
#define DIFFUSE_MODELS_MODELS_H

#include <stdint.h>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "release/release.h"
#include "sums/layout.h"

/* ---- the descent (sgd.c) --------------------------------------------------------------------- */

/* Projected noisy stochastic gradient descent on the release lattice.
**
** The algorithm is Algorithm 1 of Balle, Barthe, Gaboardi and Geumlek 2019. It reads every row
** once, in the order in which rows arrive. Each row moves the coefficients w of a linear model,
** where |w| <= radius:
**
**     M_i = (1 - eta l2) w_{i-1} - eta g_i   exact integers: fine steps, rounded to the lattice
**     U_i = M_i + noise                      exact sampler: N_Z(0, variance) or discrete Laplace
**     w_i = U_i, projected onto the ball     floating point: it reads U_i alone
**
** g_i is the gradient of the loss of row i, eta is the learning rate, l2 is the regularisation, and
** w_0 = 0. The code here adds no noise to the last M. The release adds this noise and stores the
** result, the last U, as its point. The published coefficients are the projection of this point.
**
** Sensitivity. Given w_{i-1}, replacing row i changes only eta g_i. clip_vector() clips eta g_i to
** a ball of radius eta * lipschitz in exact integers. M_i therefore moves by at most twice this
** radius, whatever the rounding errors in floating point are. (See sums/layout.h, and mechanism.h
** for the sum norm of Laplace noise.) Every later step is a function of U_i, of rows that both data
** sets share, and of its own noise. A row therefore pays only for the draw of its own step. A row
** pays nothing for the regularisation, because this term is the same in both data sets.
**
** Learning rates may fall from step to step: eta_i = eta/(1 + decay (i - 1))^power. The clip and
** the noise of a step fall with them. Let s_i be the integer sensitivity of step i, and s and V the
** sensitivity and the variance of the last step. Then V_i = ceil(V s_i^2/s^2) + 1, or t_i = ceil(t
** s_i/s) for Laplace noise of scale t. So the ratio of sensitivity to noise is largest for the last
** row. Relative to its noise, an earlier step has a finer lattice. For Laplace noise, a finer
** lattice does not make shifted noise easier to distinguish, so the last row has the largest cost
** here too.
**
** Requirements:
**   G1  The descent takes exactly rows + public_rows steps, or the number of steps that the random
**       stop has drawn. The number of rows that arrive does not matter. A missing row has no
**       gradient, and surplus rows are not read. Public rows are known by their place only, so the
**       owner vouches that at most `rows` private rows arrive.
**   G2  If the gradient of a row cannot be computed, the row has no gradient. The descent still
**       takes a step with noise for this row.
**   G3  Intermediate coefficients and unused noise are wiped. */

enum loss { LOSS_LOGISTIC, LOSS_SQUARED, LOSS_HUBER, LOSSES };

/* The public parameters of a model. NaN marks a number that was not given. */
struct descent {
  enum loss loss;
  double rows, public_rows; /* whole numbers */
  double dim;
  double clip;             /* a bound on the norm of the features */
  double radius;           /* radius of the ball that contains the coefficients */
  double l2;               /* strong convexity: l2/2 |w|^2 is added to the loss of each row */
  double eta, default_eta; /* learning rate; default_eta is 1 if eta was derived, not given */
  double bound;            /* a bound on |y| */
  double threshold;        /* threshold of the Huber loss */
  double lipschitz, beta;  /* bounds on the gradient and the Hessian (descent_derive) */
  double random_stop;      /* 1: stop after a random number of rows */
  double decay, power;     /* how the learning rate falls; decay 0: all steps are equal */
  double laplace;          /* 1: Laplace noise */
  double variance;         /* clock (mechanism.h) of the noise of the last step; below 2^53 */
};

static inline const struct noise_law *descent_noise_law(const struct descent *descent) {
  return descent->laplace > 0 ? &laplace_noise : &gaussian_noise;
}

/* The mechanisms that release models (hiding.c), in the order in which messages list them, then
** null. sgd_gaussian and sgd_laplace are those in which every row is private. */
extern const struct mechanism sgd_gaussian, sgd_laplace;
extern const struct mechanism *const model_mechanisms[];

/* The family of models, whose estimates are the coefficients. */
extern const struct family family_sgd;

const struct mechanism *descent_mechanism(const struct descent *descent);

/* Bounds on parameters. */
#define SGD_MAX_ROWS     1e9
#define SGD_MAX_PUBLIC   1e6
#define SGD_MAX_RADIUS   0x1p40 /* in lattice steps */
#define SGD_VARIANCE_END 0x1p53
#define SGD_MAX_DECAY    1e6
#define SGD_MAX_STEPS    1e7 /* for falling learning rates, because the code examines each step */

/* Sets lipschitz and beta. Without regularisation, the gradient of the loss has a norm of at most
** lipschitz for every w in the ball, every |x| <= clip and every |y| <= bound. The eigenvalues of
** the Hessian are then between 0 and beta - l2.
**     logistic  log(1 + e^(-t w.x)) with t = 1 for y > 1/2, and t = -1 otherwise.
**               lipschitz = clip, beta - l2 = clip^2/4.
**     squared   (w.x - y)^2/2.
**               lipschitz = clip (radius clip + bound), beta - l2 = clip^2.
**     huber     with r = w.x - y: r^2/2 if |r| <= threshold, else threshold (|r| - threshold/2).
**               lipschitz = clip min(threshold, radius clip + bound), beta - l2 = clip^2. */
void descent_derive(struct descent *descent);

double descent_largest_eta(const struct descent *descent);

/* The largest distance by which a row moves the coefficients, which is the clip of a model's
** release. */
static inline double descent_step(const struct descent *descent) {
  return descent->eta * descent->lipschitz;
}

/* The Lipschitz constant of the first step without noise, as a function of w: max(|1 - eta l2|, |1
** - eta beta|), but at most 1. */
double descent_contraction(const struct descent *descent);

/* The parameters of step i, on the lattice of the release. */
struct hop {
  double eta, contraction;
  uint64_t sensitivity, clock;
};

/* The steps of a descent, on a lattice 2^shift times coarser than that of the shape. */
struct course {
  const struct descent *descent;
  struct layout shape; /* layout of the first step */
  int shift, granularity;
  double steps;
  struct hop last;
};
void course_make(struct course *course, const struct descent *descent, const struct layout *shape,
                 int shift);

void course_hop(const struct course *course, double i, struct hop *hop);

/* Designs the lattice for a rate, as design_make() does. Fills the design and sets *variance to the
** variance of the noise of each step (the last step, with falling learning rates). Sets *variance
** to 0 if no lattice is possible.
**
** Without public rows, a row is charged for its one draw. Public rows come last. The noise of their
** steps also hides the private rows, which lowers the cost (Balle et al. 2019, Theorem 5, along the
** best path). Let s be the integer sensitivity of the private row's own step, and let m steps
** follow. Each step multiplies the distance of two points by at most the contraction L <= 1. The
** noise of each step covers a part of the remaining distance. Let a_j be the distance that the
** noise of step j after the private row covers. The distance that remains after the last step is
**     T = L^m s + e (1 + L + ... + L^(m-1)) - sum_j L^(m-j) a_j.
** Here e = 5/2 sqrt(dim) lattice steps bounds what rounding can add in one step. This bound has
** three parts. First, a_j is the norm of a part of an integer vector that is rounded towards zero,
** which leaves up to sqrt(dim) of the distance. Second, rounding two points to the lattice can move
** them apart by up to sqrt(dim). Third, the error of floating point is less than sqrt(dim)/4 as
** long as the radius of the ball is at most SGD_MAX_RADIUS lattice steps.
**
** The noise of step j is compared with the same noise moved by an integer vector of norm a_j, which
** costs exactly alpha a_j^2/(2 variance) (shift reduction: Feldman et al. 2018; discrete Gaussian:
** Canonne, Kamath and Steinke 2020, Theorem 4). The best a_j make T zero and are proportional to
** L^(m-j). Together they cost alpha T_0^2/(2 clock). Here the sensitivity T_0 is the value of T if
** all a_j are 0, and the clock is variance sum_j L^(2j) over j = 0 .. m. The cost is the same as if
** only the last point had noise, with this clock as variance. The noise that dp_diffuse() adds to
** the last point adds to this clock.
**
** With falling learning rates, each step has its own L and variance. The last private row then does
** not always have the largest cost. The sensitivity is therefore chosen so that, at the clock of
** the last row, the cost is that of the worst row. The path bound does not hold for Laplace noise.
** For this noise, the sensitivity and the clock are those of the last step. */
void descent_design(const struct descent *descent, const struct layout *shape, double rate,
                    struct design *design, uint64_t *variance);

/* Checks that dp_diffuse() may raise the clock of the last point to `clock`. The last private row
** then costs T_0^2/(2 clock), and no earlier row may cost more. The steps after an earlier row also
** hide that row, but the rounding in each step adds to the distance. Two bounds on its cost are
** computed, one with all steps after the row and the additional noise, one with only the first few
** of these steps, because everything after them is post-processing. The smaller must be at most the
** cost of the last row. Both are Renyi bounds, not Gaussian profiles.
**
** For Laplace noise, the noise of the last step alone must be enough for every row. In the
** Euclidean norm, a row moves its step by at most s/sqrt(dim), where s is the sensitivity. If L
** s/sqrt(dim) + 5/4 sqrt(dim) is at most s/sqrt(dim), an earlier row never moves the coefficients
** of the last step further than the last row does, so the widened noise of the last step hides it
** as well. */
int descent_diffusible(const struct descent *descent, const struct layout *shape, int shift,
                       uint64_t clock);

/* Returns the sensitivity T_0, rounded up, on a lattice 2^shift times coarser than the fine one. */
uint64_t descent_sensitivity(const struct descent *descent, const struct layout *shape, int shift);

/* For Gaussian noise: sets rates[i - 1] to a zCDP rate of private row i, for i = 1 .. rows: the
** least of the bounds T_0^2/(2 clock) with only the first k steps after the row, over k = 0 .. rows
** - i + public_rows, because all later steps are post-processing. With falling learning rates, only
** some k are tried. The rate of the last row is at most the charged rate. */
void descent_rates(const struct descent *descent, const struct layout *shape, int shift,
                   double *rates);

/* The clock of the first point of the release, rounded down; without public rows `variance`. */
uint64_t descent_clock(const struct descent *descent, const struct layout *shape, int shift);

/* Returns an upper bound on the variance that the noise of all steps adds to a coefficient: on the
** mean, over all coefficients, of the expected squared difference from the same descent without
** noise, in squared lattice steps. A step multiplies the distance of two points by at most
** `contraction`, and a projection does not increase it, so with equal steps the bound is variance *
** sum over steps j of contraction^(2j). */
double descent_noise(const struct descent *descent, const struct layout *shape, int shift);

/* The derivative of the loss with respect to w.x at w.x = margin. */
double descent_slope(const struct descent *descent, double margin, double y);

/* Scales features to a norm of at most clip, and leaves those within the clip. */
void descent_clip(const struct descent *descent, double *features);

/* Projects a point of the lattice 2^granularity Z onto the ball: the coefficients w. */
void ball_project(double radius, const int64_t *point, int dim, int granularity, double *w);

struct training;

/* Starts a descent with w = 0 and draws the random stop, if there is one. `shape` is the layout of
** a release whose clip is descent_step(descent), and `design` its lattice. The training keeps
** pointers to `descent` and `design`. Returns null if memory runs out or the system provides no
** random bytes. */
struct training *training_open(const struct descent *descent, const struct layout *shape,
                               const struct design *design);
void training_close(struct training *training);

/* Adds one row, without a gradient if features is null (G2). Features are finite, and clipped in
** place. */
void training_add(struct training *training, double y, double *features);

/* Takes some of the remaining steps (G1), for which no rows have arrived, in a few milliseconds.
** Returns whether steps remain. */
int training_rest(struct training *training);

/* Takes the remaining steps (G1). Returns the last M in fine steps, one number for each
** coefficient, in an array of the training, or null if the system provided no random bytes. */
int128 *training_totals(struct training *training);

/* ---- what later steps hide (hiding.c) -------------------------------------------------------- */

/* Privacy bounds for a row whose step in the training of a model is followed by
** further steps. The noise of these further steps hides the row.
**
** Both bounds below hold for the mechanism of sgd.c exactly as the code runs: on the lattice, with
** all rounding, and for the last point before its projection.
**
** The path bound (Balle et al. 2019, Theorem 5) uses the distance T_0 and the clock of the path in
** sgd.c (descent_design). The theorem's proof works for hypothesis tests as well as for Renyi
** divergences (Bok, Su and Altschuler 2024). In this proof, the noise of step j is compared with
** the same noise moved by an integer vector of norm at most a_j. The proof uses a
** continuous Gaussian of variance V - 1/12 that is rounded to integers. Rounding and moving by an
** integer vector give the same result in either order. The total variation distance between the
** rounded Gaussian and the discrete noise of variance V is at most gaussian_lattice_slack() for
** each coordinate. The privacy profile of the row is therefore at most that of a Gaussian of the
** path's rate, plus (1 + e^epsilon) times the slack of all draws from the row's own step on.
**
** The contraction bound (Asoodeh et al. 2020, Theorems 3 and 4, with Balle et al. 2019, Theorem
** 1(2), applied again in each step) starts with d_0, the hockey-stick divergence of order e^epsilon
** after the row's own step. Each later step replaces d by
**     d <- d E(epsilon~, moved),  epsilon~ = ln(1 + (e^epsilon - 1)/d).
** Here `moved` = L * 2 radius + 5/4 sqrt(dim) lattice steps. This is an upper bound on the distance
** of two points that start a step in the ball, after the step and its rounding. E is the largest
** divergence between the noise and the noise moved by this distance:
**     Gaussian   the divergence of rounded Gaussians, plus the slack of one step; for large
**                epsilon, exp(-(epsilon - r)^2/(4r)), where r = moved^2/(2 variance) is the exact
**                rate
**     Laplace    [1 - e^((epsilon - moved/t)/2)/cosh(1/(2t))]_+, where `moved` is in the sum norm,
**                which is at most sqrt(dim) times the distance above
** In one dimension, the Laplace formula is exact for the discrete distribution, except that the
** formula also accepts a distance `moved` that is not an integer. Several coordinates never have a
** larger divergence than one coordinate that moves by the sum of all moves. To see this for two
** coordinates, let the smaller move be m steps and fix the outcome of its coordinate. The privacy
** loss of this outcome is at most m/t. The divergence is then at most that of the other coordinate
** at order e^(epsilon - m/t). This equals the divergence of one coordinate that moves by the sum.
**
** The code combines both bounds: after each step, d is replaced by the path bound if the path bound
** is smaller. A bound may ignore any number of steps at the end, because they are
** post-processing. */

/* For each private row i, lowers epsilons[i - 1], a valid epsilon already, to the least epsilon
** that the contraction bound proves for this delta; delta = 0 means pure differential privacy. If
** more than 256 steps follow a row, it may only get the epsilon of the next row after it that is
** not skipped. */
void hiding_lower(const struct course *course, double delta, double *epsilons);

/* For Gaussian noise: sets epsilons[i - 1] to the epsilon that the path bound proves for row i and
** this delta. `rates` are those of descent_rates(). */
void hiding_path_epsilons(const struct course *course, double delta, const double *rates,
                          double *epsilons);

/* For Gaussian noise and a random stop (Asoodeh et al. 2020, Theorem 5): returns the delta of the
** worst row, the first one. The descent reads only the first `stop` rows, where stop is uniform on
** 1 .. rows. The delta of row i is the mean of its deltas over all stops: 0 if the descent stops
** before the row, and d_k, the contraction bound, if it stops k steps after it: sum_{k=0}^{rows -
** i} d_k/rows. The bound also holds for an observer who knows the stop, because the duration of a
** release shows it. hiding_stop_deltas() sets deltas[i - 1] for each row. */
double hiding_stop_delta(const struct course *course, double epsilon);
void hiding_stop_deltas(const struct course *course, double epsilon, double *deltas);

/* Sets descent->variance to the least variance at which the worst row's delta is at most `delta`;
** 0: none. */
void hiding_stop_variance(struct descent *descent, const struct layout *shape,
                          const struct design *design, double epsilon, double delta);

/* ---- releases of models (model.c) ------------------------------------------------------------ */

/* Releases of models. Converts the parameters of a model between three forms: the options,
** the text dp_release.model in the ledger, and struct descent. */

/* The room: dp_sgd, its rows and mechanisms, and the functions that use stored models. */
extern const struct room models_room;

/* The details of a request for a model: the options that only models have. */
struct model_options {
  struct descent descent;
  char *loss, *stop, *schedule;
};

/* A release with a path, with the noise and the learning rate of the tier, and with what the rows
** after a row hide. */
extern const struct procedure model_procedure;

int models_read(const char *text, struct descent *descent); /* 0: the text is not a model */

/* The largest cost that one row of a model may have at a tier: the rate for a model that publishes
** the last point; epsilon and delta for a random stop, where every epsilon-DP mechanism has at most
** this rate (response_epsilon()). */
struct price {
  double rate, epsilon, delta;
};

struct price model_price(const struct ledger_tier *tier, double weight, double share);

struct contribution model_contribution(const struct descent *descent);

#endif
