/* math.h: the privacy mathematics of this room, one section for each C file. README.md derives the
** formulas that are not in the papers. No function allocates memory unless it says so. */
#ifndef DIFFUSE_MATH_MATH_H
#define DIFFUSE_MATH_MATH_H

#include <stddef.h>
#include <stdint.h>

#include "math/numeric.h"

/* ---- cost.c: costs and budgets --------------------------------------------------------------- */

/* A publication with this cost is (alpha, alpha rate + curve(alpha))-RDP for every order alpha,
** except with failure probability delta. Gaussian noise costs a rate only, pure mechanisms such as
** Laplace noise cost a curve, and approximate ones such as private key selection a delta. */
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0; each publication pays it in full, out of the tier's delta_keys */
  /* the RDP that is added to the RDP of the rate; null: no curve */
  double (*curve)(const void *parameters, double alpha);
  const void *parameters; /* the first argument of curve() */
};

/* ---- rounding -------------------------------------------------------------------------------- */

/* The functions of math/ have relative errors of about 1e-14. This margin of 4.5e-13 is much
** larger, and smaller than 1e-12, the accuracy that the documentation promises. */
#define PUBLISHED_MARGIN 0x1p-41

/* Round x >= 0: up for a cost, a deviation or a failure probability, down for an amount to
** spend. */
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

/* Returns the zCDP rate of discrete Gaussian noise of variance V >= 1 on a sum of integers (a
** lattice release) with integer sensitivity s < 2^32, rounded up: s^2/(2(V - 1/12)). This bounds
** two rates: the exact s^2/(2V) of the discrete Gaussian (Canonne, Kamath and Steinke 2020, Theorem
** 4), and that of the continuous Gaussian by which the exact Gaussian accountant replaces it. */
static inline double lattice_rate(uint64_t sensitivity, uint64_t variance) {
  double s = (double)sensitivity;
  return 6 * s * s / (12.0 * (double)variance - 1) * (1 + 0x1p-49);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* A running total, high + low (double-double, Dekker 1971). An addition is exact except for the
** last rounding of `low`, which goes up: 0.5 grows by 1e-11 with a million terms of 1e-17. */
struct total {
  double high, low;
};

/* total + term, rounded up; the term is finite. The least double that is not below the total.
** Whether the total is at most `limit`: 0 if one of them is NaN. And a lower bound on limit -
** total, or 0 if this difference is negative. */
struct total total_add(struct total total, double term);
double total_up(struct total total);
int total_within(struct total total, double limit);
double total_left(struct total total, double limit);

/* The largest double x >= 0 such that paid - x >= cost, or 0 if there is none; and the least x >= 0
** such that paid + x is at least `cost`. */
double total_spare(struct total paid, double cost);
double total_missing(struct total paid, double cost);

/* ---- Renyi differential privacy -------------------------------------------------------------- */

/* The grid of orders of Renyi differential privacy (RDP), the conversion to (epsilon, delta), and
** the limits that privacy filters enforce.
**
** The curve of a mechanism is a function r such that the mechanism is (alpha, r(alpha))-RDP for
** every order alpha. A zCDP rate L is the curve r(alpha) = alpha L. A curve converts to (epsilon,
** delta) as follows (Balle et al. 2020, Theorem 21; Canonne, Kamath and Steinke 2020, Proposition
** 12):
**     epsilon = r(alpha) + ln(1 - 1/alpha) - (ln delta + ln alpha)/(alpha - 1),
** minimised over alpha > 1, and 0 if the minimum is negative. A budget is valid for adaptively
** chosen releases if it is enforced at one order that was fixed in advance (Feldman and Zrnic 2021,
** Renyi filters).
**
** These functions return NaN for arguments outside their domain. The relative error is at most
** 1e-12 (measurements showed 1e-14). If a result is a difference close to 0, the error is relative
** to the largest term of this difference. They round to nearest; the functions above round in the
** direction of privacy. */

/* The stored orders: 1 + 2^(k/4) for k = -32 .. 80, then infinity. renyi_order() returns one. */
#define RENYI_ORDERS 114
double renyi_order(int index);

/* Returns the largest r(alpha) that converts to (epsilon, delta) at the single order alpha > 1:
** what a tier may spend at this order. At order infinity it is epsilon, and negative if even 0 does
** not convert. epsilon >= 0, 0 < delta < 1, here and below. */
double renyi_allowed(double alpha, double epsilon, double delta);

/* Returns the least epsilon to which the zCDP rate `rate` >= 0 converts, over all real orders. */
double zcdp_epsilon(double rate, double delta);

/* Returns the largest rate whose zcdp_epsilon() is at most epsilon > 0. Sets *order, unless it is
** null, to the order that attains it, at which a tier's privacy filter enforces its budget. */
double zcdp_rate(double epsilon, double delta, double *order);

/* A curve is stored as an array with the values of r at the stored orders; the one at order
** infinity is infinite if the mechanism is not pure. Between two stored orders, the chord of (alpha
** - 1) r(alpha) is an upper bound, because this function is convex. Below the least stored order, r
** is at most its value there, because r does not decrease with alpha. renyi_curve_at() returns this
** bound for any order in (1, infinity]. */
double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha);

/* Returns the least epsilon to which the sum of `rate` >= 0 and a curve >= 0 converts, at the
** stored orders and the orders between them. If the curve is 0, the result is zcdp_epsilon(). */
double renyi_epsilon(double rate, const double curve[RENYI_ORDERS], double delta);

/* ---- gaussian.c ------------------------------------------------------------------------------ */

/* The exact privacy profile of the Gaussian mechanism.
**
** Let mu = sqrt(2 rate) = sensitivity/sigma. A Gaussian mechanism of zCDP rate `rate` is (epsilon,
** delta)-DP if and only if delta >= gaussian_delta(rate, epsilon) (Balle and Wang 2018, Theorem 8;
** Balle et al. 2019, section 5; Asoodeh et al. 2020, Lemma 2: theta_{e^epsilon}(mu)). The rates of
** adaptively chosen releases add up.
**
** Arguments are finite, unless a comment allows infinity. The functions return NaN outside the
** stated domain. The relative error is at most 1e-12 wherever the result is a normal double (for
** rates from 1e-12 to 1e6 and delta down to 1e-300); a computation in 70 digits showed 1e-14. An
** epsilon below mu/500 is less accurate, because delta is then close to gaussian_delta(rate, 0):
** its absolute error is up to 2e-15 mu. The functions round to nearest; those of cost.c round in
** the direction of privacy. */

/* gaussian_delta() returns the least delta for which a Gaussian mechanism of this rate >= 0 is
** (epsilon, delta)-DP, and 0 for an infinite epsilon. gaussian_log_delta() returns its natural
** logarithm, even where delta would underflow. gaussian_epsilon() returns the least epsilon >= 0
** for a delta, and gaussian_rate() the largest rate. epsilon >= 0, 0 < delta < 1. */
double gaussian_delta(double rate, double epsilon);
double gaussian_log_delta(double rate, double epsilon);
double gaussian_epsilon(double rate, double delta);
double gaussian_rate(double epsilon, double delta);

/* Returns the lattice slack: an upper bound on the total variation distance between a discrete
** Gaussian of this integer variance >= 2^20 and a rounded continuous Gaussian of variance s^2 =
** variance - 1/12: 0.0035 (1 + 1.12/s)/s^4 + 1.1 exp(-2 pi^2 variance). For each coordinate drawn,
** the exact Gaussian accountant (ledger/) pays this slack times (1 + e^epsilon) out of delta. */
double gaussian_lattice_slack(uint64_t variance);

/* The largest lattice slack of one coordinate of a release: slightly more than that at variance
** 2^40, the least that design_make() chooses. The ledger rounds up whenever it adds slack, and this
** margin is enough for a million additions. */
#define GAUSSIAN_DRAW_SLACK (0.0035 * 0x1p-80 * (1.0 + 0x1p-18))

/* Returns the largest rate that fits into a budget of (epsilon, delta) together with a total
** lattice slack >= 0: gaussian_rate() at delta - (1 + e^epsilon) slack. NaN if this takes half of
** delta or more. */
double gaussian_rate_beside(double epsilon, double delta, double slack);

/* Returns the lattice slack that a budget of (epsilon, delta) sets aside if each release costs
** `rate`: the larger of the slack of all such releases that fit into the budget, with one
** coordinate each, and of the slack that lowers the largest rate of the budget by one part in 2^43.
** The latter guarantees that k releases fit into the budget if `rate` is R/k, rounded down by
** published_down(), with R = gaussian_rate_beside(epsilon, delta, k * GAUSSIAN_DRAW_SLACK). NaN if
** delta leaves no room for slack. */
double gaussian_slack_beside(double epsilon, double delta, double rate);

/* ---- pure_mechanisms.c ----------------------------------------------------------------------- */

/* The privacy of pure mechanisms: Laplace noise that is added once or twice,
** randomized response, and mechanisms of bounded range.
**
** Sources for Laplace noise: Balle et al. 2019, Example 2 and Lemma 3; Asoodeh et al. 2020, Lemma
** 1. Scales are > 0 and sensitivities are >= 0. Orders alpha are >= 1: order 1 gives the
** Kullback-Leibler divergence, and order infinity the epsilon of pure differential privacy. The
** relative error is at most 1e-12 wherever the result is a normal double. The functions do not
** check their arguments. */

/* The Renyi divergence of order alpha of two Laplace distributions with centres `sensitivity`
** apart. */
double laplace_rdp(double alpha, double sensitivity, double scale);

/* The same for alpha > 1 and two discrete Laplace distributions on the integers, P(k) proportional
** to exp(-|k|/scale), with integers sensitivity, scale >= 1. The formula is exact, and at most 1 +
** 1/(2 scale) times laplace_rdp(); at scale 1 up to 26% above it. */
double discrete_laplace_rdp(double alpha, double sensitivity, double scale);

/* Returns the distance z = sensitivity/scale at which Laplace noise has the zCDP rate `rate` > 0:
** the root of z + e^-z - 1 = rate. The left side, the Renyi divergence of order 1, is also the zCDP
** rate, because the divergence of order alpha is at most alpha times as large. */
double laplace_distance(double rate);

/* Example 2: a bound on the Renyi divergence for the sum of two Laplace noises, the least of those
** that the paper gives for each intermediate point w. For finite alpha it is below laplace_rdp() of
** either noise, the bounds at the two ends of the range of w, and not tight. For alpha = infinity
** it is exact. */
double iterated_laplace_rdp(double alpha, double sensitivity, double scale1, double scale2);

/* Lemma 3, equation (6): the density of the sum of two Laplace noises at a finite x; and the least
** epsilon at which their sum is epsilon-DP, sensitivity/max(scale1, scale2). */
double laplace2_density(double x, double scale1, double scale2);
double laplace2_epsilon(double sensitivity, double scale1, double scale2);

/* Returns the x that the sum of 1 <= terms <= 100 independent Laplace noises of scale 1 exceeds
** with this probability, in (0, 1/2]. */
double laplace_sum_quantile(int terms, double probability);

/* Lemma 1: [1 - e^((epsilon - distance)/2)]_+, the hockey-stick divergence of order e^epsilon of
** two Laplace distributions whose centres are `distance` scales apart, and its natural logarithm,
** which is accurate even if the divergence is close to 1, and -infinity if it is 0. epsilon and
** distance are >= 0 and not both infinite. */
double laplace_hockey_stick(double epsilon, double distance);
double laplace_log_hockey_stick(double epsilon, double distance);

/* ---- two values of the loss ------------------------------------------------------------------ */

/* Pure mechanisms whose privacy loss takes two values in the worst case. The privacy loss of a
** mechanism of bounded range, such as the exponential mechanism, lies for any two neighbours in an
** interval of length epsilon that contains 0 (Dong, Durfee and Rogers 2020). */

/* Returns the epsilon at which randomized response has the zCDP rate `rate` > 0: the root of
** epsilon tanh(epsilon/2) = rate. */
double response_epsilon(double rate);

/* Returns the Renyi divergence of order alpha >= 1 of binary randomized response with parameter
** epsilon, the worst case of all epsilon-DP mechanisms. */
double response_rdp(double alpha, double epsilon);

/* Returns the RDP at order alpha of a mechanism of bounded range epsilon: the smaller of alpha
** epsilon^2/8 (Cesar and Rogers 2021) and response_rdp(). */
double bounded_range_rdp(double alpha, double epsilon);

/* Returns the zCDP rate mu^2/2 of Gaussian noise that is at least as easy to test as every
** mechanism of bounded range epsilon < 600, so that exact Gaussian accounting may charge it: mu = 2
** PhiInv(1/(1 + e^(-epsilon/2))); README.md has the proof. And the epsilon of a rate > 0. */
double bounded_range_gaussian_rate(double epsilon);
double bounded_range_gaussian_epsilon(double rate);

/* ---- diffusion.c ----------------------------------------------------------------------------- */

/* Brownian motion and the Ornstein-Uhlenbeck (OU) process as privacy mechanisms (Balle
** et al. 2019, section 5).
**
** A diffusion mechanism starts a process in f(D), the answer of a query f on the data D, and
** releases its value at time t. Every process here has a clock tau, which grows with t. The
** released value is f(D) + N(0, tau I) after it has been shrunk towards a centre, by a factor that
** does not depend on the data. The zCDP rate of the mechanism is exactly sensitivity^2/(2 tau).
**     Brownian motion (Example 4):      variance 2t per coordinate, tau = 2t.
**     OU (Theorem 6, Corollary 7):      dX = -theta (X - centre) dt + sqrt(2) rho dW,
**         shrink b = e^(-theta t), variance rho^2 (1 - e^(-2 theta t))/theta = b^2 tau.
** theta = 0 means Brownian motion with variance 2 rho^2 t.
**
** Norms, radii and sensitivities are in the unit of f; t and 1/theta share a unit of time, and rho
** is in the unit of f divided by its square root. Clocks, variances and mean squared errors (MSE)
** are in the square of the unit of f. Every argument is finite and >= 0; rho, radius and dimension
** are positive; sensitivity and t are not both 0 where the formula would be 0/0. The functions do
** not check this. The relative error is at most 1e-12 wherever the result is a normal double. */

/* Theorem 6 for any diffusion: the zCDP rate at time t is at most the integral of kappa from t to
** infinity. Here kappa(s) = sup_y Gamma(ln p_s(x, y)/p_s(x', y)), and Gamma is the carre du champ
** operator. The caller passes kappa at the times s of an ascending grid that starts at t, and an
** upper bound `tail` on the integral from the last time on. The result is an upper bound on the
** rate if the condition of `rule` holds between any two neighbouring times of the grid:
**     RATE_STEPS       kappa is nowhere above the value given for the earlier time, because kappa
**                      decreases or because the caller passes upper bounds;
**     RATE_CONVEX      kappa is convex: the function integrates the chord above kappa;
**     RATE_LOG_CONVEX  ln kappa is convex: the function integrates the exponential above kappa.
** The functions kappa of Brownian motion and of OU (brownian_gamma, ou_gamma) meet all of them. */
enum rate_rule { RATE_STEPS, RATE_CONVEX, RATE_LOG_CONVEX };
struct rate_point {
  double s, kappa;
};
double diffusion_rate(const struct rate_point *grid, size_t count, double tail,
                      enum rate_rule rule);

/* kappa at time s: sensitivity^2/(4 s^2) for Brownian motion, and for OU (theta sensitivity
** e^(theta s)/(rho (e^(2 theta s) - 1)))^2. */
double brownian_gamma(double sensitivity, double s);
double ou_gamma(double sensitivity, double theta, double rho, double s);

/* The zCDP rates of Brownian motion, sensitivity^2/(4 t), and of OU (Corollary 7), sensitivity^2/(2
** tau). At t = 0 the rate is infinite, or 0 if the sensitivity is 0. */
double brownian_rate(double sensitivity, double t);
double ou_rate(double sensitivity, double theta, double rho, double t);

/* The clock tau = rho^2 (e^(2 theta t) - 1)/theta, and the time t of a clock. */
double ou_clock(double theta, double rho, double t);
double ou_time(double theta, double rho, double clock);

/* The variance of each published coordinate, and e^(-theta t), by which the mean shrinks. */
double ou_variance(double theta, double rho, double t);
double ou_shrink(double theta, double t);

/* The mean squared errors of three mechanisms in `dimension` dimensions with the zCDP rate of
** OU(theta, rho) at time t (equation (4) and the text around it): of OU if the true answer is at
** distance `norm` from the centre, (1-b)^2 norm^2 + b^2 dimension tau; of the plain Gaussian
** mechanism, dimension tau; and of the Gaussian mechanism whose result is shrunk by the best
** constant (PGM in the paper), for the worst true answer within `radius` of the centre, dimension
** tau radius^2/(radius^2 + dimension tau). */
double ou_mse(double theta, double rho, double t, double norm, double dimension);
double gaussian_mse(double theta, double rho, double t, double dimension);
double pgm_mse(double theta, double rho, double t, double radius, double dimension);

/* Theorem 8 at t = 1: the OU process with the least worst-case error. ou_best_theta() returns ln(1
** + x) with x = dimension sensitivity^2/(2 rate radius^2), and ou_best_rho() the rho at which OU
** with this theta has the zCDP rate `rate`. Among all shrink factors for Gaussian noise of this
** rate, that of this process has the least worst-case MSE over the ball of this radius. rate and
** sensitivity are > 0. */
double ou_best_theta(double rate, double sensitivity, double radius, double dimension);
double ou_best_rho(double rate, double sensitivity, double radius, double dimension);

/* The shrink factors at any clock: of Theorem 8, radius^2/(radius^2 + dimension clock), and of
** OU(theta, rho), 1/sqrt(1 + theta clock/rho^2). */
double ou_shrink_radius(double radius, double dimension, double clock);
double ou_shrink_process(double theta, double rho, double clock);

/* ---- noisy_iteration.c ----------------------------------------------------------------------- */

/* Privacy of noise that is added step by step: of Gaussian noise between Lipschitz
** maps (Renyi couplings: Balle et al. 2019, Theorems 2 and 4, Examples 1 and 3), and of projected
** noisy stochastic gradient descent (SGD).
**
** alpha >= 1 is the Renyi order. Order 1 gives the Kullback-Leibler divergence. At order infinity
** the results for Gaussian noise are 0 or infinite. Distances and sensitivities are >= 0. Standard
** deviations are >= 0, and at least one of them is positive. The relative error of the bounds for
** Lipschitz maps is at most 1e-12, and of those for SGD 1e-11, wherever the result is a normal
** double. The functions do not check their arguments. */

/* The Renyi divergence of two Gaussians: alpha sensitivity^2/(2 sigma^2), exactly. In Example 1,
** noise is added twice: of variance sigma1^2 + sigma2^2 together, exactly. */
double gaussian_rdp(double alpha, double sensitivity, double sigma);
double iterated_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2);

/* Example 3: a bound on the Renyi divergence of a process that adds noise sigma1, applies a map of
** the whole space with Lipschitz constant `lipschitz`, and adds noise sigma2: the divergence for
** one noise of variance sigma1^2 + sigma2^2/lipschitz^2. With lipschitz = 0 the map is constant and
** the divergence is 0. */
double lipschitz_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2,
                              double lipschitz);

/* Theorem 4: bounds on the Renyi divergence of the outcomes of two processes of `steps` >= 1 steps.
** Each step applies a map of a convex set into itself with Lipschitz constant L = `lipschitz`, adds
** Gaussian noise sigma and projects onto the set. The processes start from two points (or two
** coupled distributions) that are `distance` apart. Equation (2) gives a bound for each path of
** distributions between the two starts. path_iteration_rdp() returns the least of them, also for L
** > 1: its path moves in step i in proportion to L^(2i), and linear maps attain it.
** printed_iteration_rdp() returns equation (3) as the paper prints it. */
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps);
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps);

/* Theorem 4 for steps with different parameters. Step j applies a map with Lipschitz constant
** `lipschitz` and adds noise sigma. A path has r shifts, where r is the number of steps. Shift i is
** the distance W_infinity(mu_(i-1), mu_i) between two neighbouring distributions of the path. Let
** P_j be the product of the Lipschitz constants of the first j steps. The noise of step j = r - i +
** 1 covers shift i, which j maps have multiplied by at most P_j by then. given_path_rdp() returns
**     alpha/2 sum_i (P_j shift_i/sigma_j)^2,
** which is equation (2) if all steps are equal. best_path_rdp() ignores `shift` and returns the
** least value of this sum over all paths whose shifts add up to `distance`: alpha
** distance^2/2/sum_j (sigma_j/P_j)^2. */
struct path_step {
  double sigma, lipschitz, shift;
};
double given_path_rdp(double alpha, const struct path_step *steps, long count);
double best_path_rdp(double alpha, const struct path_step *steps, long count, double distance);

/* Returns 1/(1 + L^-2 + ... + L^(-2 terms)), a factor of bounds for paths, with L = lipschitz >= 0,
** terms >= 0. */
struct scaled inverse_geometric(double lipschitz, double terms);

/* ---- noisy stochastic gradient descent ------------------------------------------------------- */

/* The algorithm (Balle et al. 2019, section 4; Asoodeh et al. 2020, section IV) draws a starting
** point x from a distribution that does not depend on the data. Then step i = 1..n reads record i
** and sets
**     x <- projection onto K of (x - eta (gradient of loss(x, record i) + Z)).
** The set K is convex and closed. On K the loss is lipschitz_loss-Lipschitz, beta-smooth and
** rho-strongly convex. Z is N(0, noise^2 I) or, in one dimension, Laplace noise of scale `noise`.
** Neighbouring data sets differ in the record that step `index` reads. The algorithm releases only
** the last x.
**
** If eta > 2/(beta + rho), the theorems do not apply and every bound is NaN. The functions do not
** check the other conditions. index and length are integers with 1 <= index <= length.
** lipschitz_loss, beta, rho and diameter are >= 0. noise and eta are > 0. All arguments are finite,
** except that diameter may be infinite. A loss with rho > beta does not exist, but the formulas
** have values for such arguments, and the functions return these values. */
struct sgd {
  double index;          /* i, the step that reads the differing record */
  double length;         /* n, the number of steps */
  double lipschitz_loss; /* C of Balle et al., L of Asoodeh et al. */
  /* Sigma of Gaussian noise, or scale v of Laplace noise. A step multiplies the noise by eta. */
  double noise;
  double eta;      /* step size */
  double beta;     /* smoothness */
  double rho;      /* strong convexity */
  double diameter; /* diameter of K; infinite for an unbounded set */
};

/* Bounds on the Lipschitz constant of one gradient step: the best possible max(|1 - eta rho|, |1 -
** eta beta|), for any eta; and sqrt(1 - 2 eta beta rho/(beta + rho)) of Balle et al., Lemma 18, and
** Asoodeh et al., equation (14), or NaN if eta > 2/(beta + rho). */
double sgd_contraction(double eta, double beta, double rho);
double printed_contraction(double eta, double beta, double rho);

/* Balle et al., Theorem 5: the last x is (alpha, alpha rate)-RDP for the differing record, for
** every alpha, with the rate as printed; of the optimal path, which also uses the noise of step i
** itself, 2C^2/noise^2/sum_{j=0}^{n-i} L^(-2j) with L = printed_contraction(); and of this path
** with L = sgd_contraction(). */
double sgd_rate_printed(const struct sgd *sgd);
double sgd_rate_path(const struct sgd *sgd);
double sgd_rate_best(const struct sgd *sgd);

/* A delta such that, with Gaussian noise, the last x is (epsilon, delta)-DP for the differing
** record: by Theorem 4 of Asoodeh et al.; by Theorem 1(2) of Balle et al. anew in each step after
** step i, which is never larger; and the best, the smaller of the latter with sgd_contraction() in
** place of printed_contraction(), and of the exact Gaussian profile at the rate sgd_rate_best()
** (Bok, Su and Altschuler 2024), which is never larger than the bound of Proposition 1
** (sgd_delta_rdp). */
double sgd_delta_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_best(const struct sgd *sgd, double epsilon);

/* Asoodeh et al., Proposition 1, with rate = sgd_rate_printed(): exp(-(epsilon - rate)^2 / (4
** rate)) for epsilon > rate. For a smaller epsilon the formula does not bound delta, and the result
** is 1. */
double sgd_delta_rdp(const struct sgd *sgd, double epsilon);

/* Asoodeh et al., Theorem 3: the same for Laplace noise in one dimension, where K is an interval of
** length `diameter`. The best uses only the first of the two bounds. */
double sgd_delta_laplace_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_best(const struct sgd *sgd, double epsilon);

/* Asoodeh et al., Theorem 5: with Gaussian noise, the algorithm stops after a uniformly random
** number of steps, which may be published. With theta and theta' the hockey-stick divergences of
** step i and of a later step, sgd_delta_random_stop() returns the finite sum theta/n
** sum_{k=0}^{n-i} theta'^k of the proof, never above theta, and sgd_delta_random_stop_printed() the
** closed form of equation (16), theta/(n (1 - theta')), for every index. It can exceed 1, and is
** infinite if theta' is 1, for example because K is unbounded. */
double sgd_delta_random_stop(const struct sgd *sgd, double epsilon);
double sgd_delta_random_stop_printed(const struct sgd *sgd, double epsilon);

/* The hockey-stick divergence of order e^epsilon of two Gaussians whose centres are `distance` in
** [0, infinity] standard deviations apart (Asoodeh et al., Lemma 2), and its natural logarithm,
** which is accurate even if the divergence is close to 1, and -infinity if it is 0. */
double gaussian_hockey_stick(double epsilon, double distance);
double gaussian_log_hockey_stick(double epsilon, double distance);

/* Returns the sum of q^k over k = 0 .. count - 1, computed from ln q <= 0. count >= 0. */
double geometric_sum(double log_q, double count);

/* ---- mixing.c -------------------------------------------------------------------------------- */

/* Privacy amplification by uniform mixing (Balle et al. 2019, Theorem 1) and the
** contraction coefficients of finite Markov kernels (Asoodeh et al. 2020, Theorem 2).
**
** The papers define four conditions on a kernel K whose rows sum to 1. Each condition has a
** parameter gamma. This list gives, for each condition, the least gamma for which K meets it:
**     Dobrushin                   max over x, x' of the total variation of K(x) and K(x')
**     (gamma, epsilon)-Dobrushin  max over x, x' of sum_y [K(x,y) - e^epsilon K(x',y)]_+
**     Doeblin                     1 - sum_y min_x K(x,y)
**     ultra-mixing                max over x, x', y of 1 - K(x,y)/K(x',y)
** For every kernel these four values are ordered: (gamma, epsilon)-Dobrushin <= Dobrushin <=
** Doeblin <= ultra-mixing.
**
** A struct kernel's rows sum to 1. No function of this file checks its arguments. */

/* The output of the kernel is (epsilon, delta)-DP. */
struct amplified {
  double epsilon;
  double delta;
};

/* Theorem 1: the privacy of an (epsilon, delta)-DP mechanism that is followed by a kernel, which
** meets the named condition with this gamma; amplify_dobrushin() is for parts 1 and 2, with gamma
** at mixing_epsilon() for part 2. 0 <= gamma, delta <= 1 and 0 <= epsilon <= infinity. The relative
** error is at most 1e-12 wherever the result is a normal double. */
struct amplified amplify_dobrushin(double gamma, double epsilon, double delta);
struct amplified amplify_doeblin(double gamma, double epsilon, double delta);
struct amplified amplify_ultra(double gamma, double epsilon, double delta);

/* Returns ln(1 + (e^epsilon - 1)/delta), at which part 2 of Theorem 1 needs the (gamma,
** epsilon~)-Dobrushin condition: 0 for epsilon = 0, and infinite for delta = 0 < epsilon, where the
** amplified delta is 0 for every kernel. */
double mixing_epsilon(double epsilon, double delta);

/* A kernel of `rows` x `columns` probabilities, stored row after row. */
struct kernel {
  const double *probability;
  size_t rows;
  size_t columns;
};

double kernel_dobrushin(const struct kernel *kernel);
double kernel_doeblin(const struct kernel *kernel);

/* NaN if the supports of two rows differ: no gamma satisfies the condition. */
double kernel_ultra(const struct kernel *kernel);

/* Returns the maximum over x, x' of sum_y [weight K(x,y) - (weight + e^epsilon - 1) K(x',y)]_+, for
** weight >= 0 and 0 <= epsilon <= infinity: for weight = 1 the least gamma of the (gamma,
** epsilon)-Dobrushin condition, and for weight = delta the delta of Theorem 1(2), also at delta =
** 0, by which it does not divide. */
double kernel_hockey_stick(const struct kernel *kernel, double weight, double epsilon);

/* Returns the least delta' such that every (epsilon, delta)-DP mechanism is (epsilon_out,
** delta')-DP after the kernel. The result is exact for every epsilon_out >= 0: that of Theorem 1(2)
** for (epsilon_out, d), where every input is (epsilon_out, d)-DP with d = delta + (1-delta)
** [e^epsilon - e^epsilon_out]_+/(1+e^epsilon) (README.md). */
double kernel_worst_delta(const struct kernel *kernel, double epsilon, double delta,
                          double epsilon_out);

/* Raises rdp[k] to the Renyi divergence of order orders[k] > 1 of the worst pair of outputs whose
** first row is `row`, if the input of the kernel is the output of an epsilon-DP mechanism. Order
** infinity gives the epsilon of pure differential privacy. The caller sets rdp[k] to 0 and calls
** the function for every row, so that it can stop between two rows of a large kernel. The result is
** exact (README.md): that of randomized response between two states. 0 <= epsilon < 700. The
** relative error is at most 1e-12 for every result above 1e-280. `rest` (or null) holds corrections
** of the probabilities, each smaller than the rounding error of its probability. Returns 0 if
** memory runs out. */
int kernel_rdp(const struct kernel *kernel, const double *rest, double epsilon, size_t row,
               const double *orders, int count, double *rdp);

/* ---- two kernels, couplings, powers ---------------------------------------------------------- */

/* Returns the largest hockey-stick divergence of order e^epsilon, in [0, infinity], between
** first(x) and second(x), over all states x: if both kernels, of equal size, get the same input, it
** bounds how well an output shows which of the two ran. */
double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon);

/* Returns the largest hockey-stick divergence of order e^epsilon_out between the outputs of two
** kernels whose inputs an (epsilon, delta)-DP mechanism makes from neighbouring data sets, one for
** each kernel. Every such pair of inputs has the form delta A + (1-delta)(a B + b C) and delta D +
** (1-delta)(b B + a C), where A, B, C and D are distributions, a/b = e^epsilon and a + b = 1
** (Kairouz, Oh and Viswanath 2015). The divergence is convex in each of them, so in the worst case
** they are single states. The running time is proportional to rows^4 columns, or to rows^2 columns
** if delta = 0. NaN: memory ran out. */
double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out);

/* Returns the least epsilon_out for which kernel_worst_delta() is at most delta_out, rounded up by
** about one unit in the last place: infinity if no finite one is enough, and NaN if memory runs
** out. */
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out);

/* Returns the bound of Theorem 2 on coupled_rdp(): R(omega || nu) plus the largest R(pi_x K ||
** K(x)) over the states x with omega(x) > 0. K is the kernel and R is the Renyi divergence of order
** alpha. pi is the coupling, rows x rows entries: its row sums are omega, its column sums are mu,
** and its row x divided by omega(x) is pi_x. nu has `rows` entries. coupled_rdp() returns R(mu K ||
** nu K). NaN: memory ran out. */
double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha);
double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha);

/* Sets `power` (rows x rows entries) to `steps` >= 1 applications of a square kernel, with rows
** that sum to 1 after each product. Returns 0 if memory runs out. */
int kernel_power(const struct kernel *kernel, double steps, double *power);

#endif
