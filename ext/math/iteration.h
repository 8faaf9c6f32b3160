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
** Every result is NaN where the theorem says nothing: eta > 2/(beta + rho). Conditions, not
** checked: 1 <= index <= length, whole numbers; lipschitz_loss, beta, rho, diameter >= 0; noise,
** eta > 0; finite except diameter. rho > beta describes no loss, but the formulas are defined and
** computed. Relative error is at most 1e-11 wherever the result is a normal double.
*/
#ifndef DIFFUSE_MATH_ITERATION_H
#define DIFFUSE_MATH_ITERATION_H

struct sgd {
  double index;          /* i, when the differing record is read */
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
** Balle et al., Theorem 5: a rate such that the differing record is protected by (alpha,
** alpha rate)-RDP for every alpha. As printed; along the optimal path, which also uses the noise of
** step i itself, 2C^2/noise^2/sum_{j=0}^{n-i} L^(-2j); and that with the best contraction.
*/
double sgd_rate_printed(const struct sgd *sgd);
double sgd_rate_path(const struct sgd *sgd);
double sgd_rate_best(const struct sgd *sgd);

/*
** The delta at which the differing record is protected by (epsilon, delta)-DP, Gaussian noise.
** printed: Asoodeh et al., Theorem 4. iterated: Theorem 1(2) of Balle et al. applied anew in each
** step after i, never above printed. best: the least of what is valid, that is of `iterated` with
** the best contraction and the exact Gaussian profile at sgd_rate_best (Bok, Su and Altschuler
** 2024). Proposition 1 is never below that profile, and Theorem 4 never below `iterated`.
*/
double sgd_delta_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_best(const struct sgd *sgd, double epsilon);

/*
** Asoodeh et al., Proposition 1: sgd_rate_printed converted to delta, exp(-(epsilon - rate)^2 /
** (4 rate)) for epsilon > rate; 1 where it says nothing about delta.
*/
double sgd_delta_rdp(const struct sgd *sgd, double epsilon);

/* Theorem 3, Laplace noise in one dimension, K an interval of length diameter. Methods as above. */
double sgd_delta_laplace_printed(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_iterated(const struct sgd *sgd, double epsilon);
double sgd_delta_laplace_best(const struct sgd *sgd, double epsilon);

/*
** Theorem 5, Gaussian noise, stopped after a uniformly random number of steps (which may be
** revealed): the finite sum theta/n sum_{k=0}^{n-i} theta'^k of its proof, never above theta, where
** the printed closed form, equation (16), can exceed 1: theta/(n (1 - theta')), whatever the index.
** It is infinite where theta' is 1, which an unbounded set makes it.
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
