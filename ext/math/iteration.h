/* iteration.h: privacy of noise that is added step by step: of Gaussian noise between Lipschitz
** maps (Renyi couplings: Balle et al. 2019, Theorems 2 and 4, Examples 1 and 3), and of projected
** noisy stochastic gradient descent (SGD).
**
** alpha >= 1 is the Renyi order. Order 1 gives the Kullback-Leibler divergence. At order infinity
** the results for Gaussian noise are 0 or infinite. Distances and sensitivities are >= 0. Standard
** deviations are >= 0, and at least one of them is positive. The relative error of the bounds for
** Lipschitz maps is at most 1e-12, and of those for SGD 1e-11, wherever the result is a normal
** double. The functions do not check their arguments. */
#ifndef DIFFUSE_MATH_ITERATION_H
#define DIFFUSE_MATH_ITERATION_H

#include "math/numeric.h"

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

#endif
