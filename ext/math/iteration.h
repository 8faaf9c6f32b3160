/*
** iteration.h: privacy of projected noisy stochastic gradient descent (SGD).
**
** The algorithm (Balle et al. 2019, section 4; Asoodeh et al. 2020, section IV): from a starting
** law that does not depend on the data, step i = 1..n reads record i once and sets
**     x <- projection onto K of (x - eta (gradient of loss(x, record i) + Z)),
** K convex and closed; the loss is lipschitz_loss-Lipschitz, beta-smooth and rho-strongly convex on
** K; Z is N(0, noise^2 I), or, in one dimension, Laplace of scale noise. Neighbouring data replace
** the record that is read at `index`; only the last x is released.
**
** Every result is NaN if eta > 2/(beta + rho), where the theorems do not apply. The functions do
** not check the other conditions: index and length are integers with 1 <= index <= length;
** lipschitz_loss, beta, rho and diameter are >= 0; noise and eta are > 0; all are finite except
** diameter. No loss has rho > beta, but the formulas are defined there and the functions compute
** them. Relative error is at most 1e-11 wherever the result is a normal double.
*/
#ifndef DIFFUSE_MATH_ITERATION_H
#define DIFFUSE_MATH_ITERATION_H

struct sgd {
  double index;          /* i, the step that reads the differing record */
  double length;         /* n, the number of steps */
  double lipschitz_loss; /* C of Balle et al., L of Asoodeh et al. */
  double noise;          /* sigma, or the scale v of Laplace noise; both before eta */
  double eta;            /* step size */
  double beta;           /* smoothness */
  double rho;            /* strong convexity */
  double diameter;       /* of K; infinite for an unbounded set */
};

/*
** Lipschitz constant of one gradient step. sgd_contraction: max(|1 - eta rho|, |1 - eta beta|), the
** best possible, for any eta. printed_contraction: Lemma 18 of Balle et al. and equation (14) of
** Asoodeh et al., sqrt(1 - 2 eta beta rho/(beta + rho)), NaN for eta > 2/(beta + rho).
*/
double sgd_contraction(double eta, double beta, double rho);
double printed_contraction(double eta, double beta, double rho);

/*
** Balle et al., Theorem 5: a rate such that the differing record is protected by (alpha, alpha
** rate)-RDP for every alpha. sgd_rate_printed is the printed rate. sgd_rate_path uses the optimal
** path, which includes the noise of step i itself: 2C^2/noise^2/sum_{j=0}^{n-i} L^(-2j).
** sgd_rate_best is sgd_rate_path with the best contraction.
*/
double sgd_rate_printed(const struct sgd *sgd);
double sgd_rate_path(const struct sgd *sgd);
double sgd_rate_best(const struct sgd *sgd);

/*
** The delta at which the differing record is protected by (epsilon, delta)-DP, for Gaussian noise.
** printed: Asoodeh et al., Theorem 4. iterated: Theorem 1(2) of Balle et al., applied again in each
** step after i; never above printed. best: the smaller of two valid bounds, `iterated` with the
** best contraction and the exact Gaussian profile at sgd_rate_best (Bok, Su and Altschuler 2024).
** Proposition 1 is never below that profile, and Theorem 4 never below `iterated`.
*/
double sgd_delta_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_best(const struct sgd *sgd, double epsilon);

/*
** Asoodeh et al., Proposition 1: sgd_rate_printed converted to delta, exp(-(epsilon - rate)^2 / (4
** rate)) for epsilon > rate; 1 for smaller epsilon, where it does not bound delta.
*/
double sgd_delta_rdp(const struct sgd *sgd, double epsilon);

/* Theorem 3, Laplace noise in one dimension, K an interval of length diameter. Methods as above. */
double sgd_delta_laplace_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_best(const struct sgd *sgd, double epsilon);

/*
** Theorem 5, Gaussian noise, stopped after a uniformly random number of steps (which may be
** revealed). sgd_delta_random_stop is the finite sum theta/n sum_{k=0}^{n-i} theta'^k of its proof,
** which is never above theta. The printed closed form, equation (16), is theta/(n (1 - theta')) for
** every index. It can exceed 1, and it is infinite if theta' is 1, as for an unbounded set.
*/
double sgd_delta_random_stop(const struct sgd *sgd, double epsilon);
double sgd_delta_random_stop_printed(const struct sgd *sgd, double epsilon);

/*
** Hockey-stick divergence of order e^epsilon of two Gaussians whose centres are `distance` standard
** deviations apart (Asoodeh et al., Lemma 2), for any distance in [0, infinity].
*/
double gaussian_hockey_stick(double epsilon, double distance);

/* Its natural logarithm: -infinity for 0, and accurate where the divergence is close to 1. */
double gaussian_log_hockey_stick(double epsilon, double distance);

#endif
