/*
** iteration.c: privacy of projected noisy stochastic gradient descent (see iteration.h).
*/
#include "math/iteration.h"

#include <float.h>
#include <math.h>

#include "math/coupling.h"
#include "math/gaussian.h"
#include "math/laplace.h"
#include "math/mixing.h"
#include "math/scaled.h"

/* ---- the contraction of one step ------------------------------------------------------------- */

double sgd_contraction(double eta, double beta, double rho) {
  return fmax(fabs(fma(-eta, rho, 1.0)), fabs(fma(-eta, beta, 1.0)));
}

/*
** 2 - eta (beta + rho) to full relative precision, because the rounding errors of the sum and the
** product are added.
*/
static double step_margin(double eta, double beta, double rho) {
  double sum = beta + rho;
  double back = sum - beta;
  double sum_low = (beta - (sum - back)) + (rho - back);
  return fma(-eta, sum, 2.0) - eta * sum_low;
}

/*
** 1 - 2 eta beta rho/(beta + rho) = (1 - eta rho)^2 + eta rho^2 (2/(beta + rho) - eta), two terms
** that are not negative. An eta that is 2/(beta + rho) rounded to a double counts as equal to it.
*/
double printed_contraction(double eta, double beta, double rho) {
  double margin = step_margin(eta, beta, rho);
  if (!(margin >= -8.0 * DBL_EPSILON)) return NAN;
  if (beta == 0.0 || rho == 0.0) return 1.0;
  double step = fma(-eta, rho, 1.0);
  double rest = eta * rho * (rho / (beta + rho)) * fmax(margin, 0.0);
  return sqrt(step * step + rest);
}

/* The best contraction, restricted to the domain of the theorems. */
static double tight_contraction(double eta, double beta, double rho) {
  double printed = printed_contraction(eta, beta, rho);
  return isnan(printed) ? printed : sgd_contraction(eta, beta, rho);
}

typedef double contraction(double eta, double beta, double rho);

/* ---- Renyi: Theorem 5 of Balle et al. -------------------------------------------------------- */

/* 2C^2/noise^2. */
static struct scaled last_rate(const struct sgd *sgd) {
  struct scaled ratio = scaled_over(scaled(sgd->lipschitz_loss), scaled(sgd->noise));
  return scaled_times(scaled(2.0), scaled_square(ratio));
}

/* Zero only if the bound is exactly zero, not if a double underflows. */
static struct scaled printed_rate(const struct sgd *sgd, double lipschitz) {
  double after = sgd->length - sgd->index;
  struct scaled rate = last_rate(sgd);
  if (after == 0.0) return rate;
  if (lipschitz == 0.0) return scaled(0.0);
  rate = scaled_times(rate, scaled_exp((after + 1.0) * log(lipschitz)));
  return scaled_over(rate, scaled(after));
}

double sgd_rate_printed(const struct sgd *sgd) {
  double lipschitz = printed_contraction(sgd->eta, sgd->beta, sgd->rho);
  return isnan(lipschitz) ? lipschitz : scaled_value(printed_rate(sgd, lipschitz));
}

/*
** The path starts from the distributions after gradient step i, which are at most 2 eta C apart.
** The first kernel only adds noise; n - i steps with Lipschitz constant L follow.
*/
static double path_rate(const struct sgd *sgd, contraction *step) {
  double lipschitz = step(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  struct scaled path = inverse_geometric(lipschitz, sgd->length - sgd->index);
  return scaled_value(scaled_times(last_rate(sgd), path));
}

double sgd_rate_path(const struct sgd *sgd) {
  return path_rate(sgd, printed_contraction);
}

double sgd_rate_best(const struct sgd *sgd) {
  return path_rate(sgd, tight_contraction);
}

double sgd_delta_rdp(const struct sgd *sgd, double epsilon) {
  double lipschitz = printed_contraction(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  struct scaled rate = printed_rate(sgd, lipschitz);
  if (rate.mantissa == 0.0) return 0.0;
  double kappa = scaled_value(rate);
  if (!(epsilon > kappa)) return 1.0;
  double gap = epsilon - kappa;
  return exp(-0.25 * gap * (gap / kappa));
}

/* ---- hockey-stick divergences ---------------------------------------------------------------- */

typedef double log_hockey_stick(double epsilon, double distance);

double gaussian_log_hockey_stick(double epsilon, double distance) {
  if (epsilon == INFINITY || distance == 0.0) return -INFINITY;
  if (distance > 1e150) return epsilon / distance < 0.5 * distance ? 0.0 : -INFINITY;
  if (distance > 1e-30) return gaussian_log_delta(0.5 * distance * distance, epsilon);
  /*
  ** For arguments this small the divergence is linear in (epsilon, distance), up to a relative
  ** error of 1e-28.
  */
  int exponent;
  double near = ldexp(frexp(distance, &exponent), -100);
  double far = ldexp(epsilon, -100 - exponent);
  return gaussian_log_delta(0.5 * near * near, far) + (100 + exponent) * M_LN2;
}

double gaussian_hockey_stick(double epsilon, double distance) {
  if (distance > 1e-30 && distance < 1e150) {
    return gaussian_delta(0.5 * distance * distance, epsilon);
  }
  return exp(gaussian_log_hockey_stick(epsilon, distance));
}

/* The distance by which the differing record moves x, in units of the noise: 2C/noise. */
static double first_distance(const struct sgd *sgd) {
  return 2.0 * (sgd->lipschitz_loss / sgd->noise);
}

/* The largest distance of two points of K after a later gradient step, in units of the noise. */
static double later_distance(const struct sgd *sgd, double lipschitz) {
  if (lipschitz == 0.0) return 0.0;
  struct scaled moved = scaled_times(scaled(lipschitz), scaled(sgd->diameter));
  struct scaled noise = scaled_times(scaled(sgd->eta), scaled(sgd->noise));
  return scaled_value(scaled_over(moved, noise));
}

/*
** Theorems 3 (Laplace) and 4 (Gaussian) and their refinements differ in the hockey-stick divergence
** of the noise and in the contraction of a gradient step; 0^0 = 1 in both.
*/
struct chain {
  log_hockey_stick *stick;
  contraction *step;
};

/* first * later^(n-i). */
static double product_bound(const struct sgd *sgd, double epsilon, struct chain chain) {
  double lipschitz = chain.step(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double after = sgd->length - sgd->index;
  double first = chain.stick(epsilon, first_distance(sgd));
  if (after == 0.0 || first == -INFINITY) return exp(first);
  return exp(first + after * chain.stick(epsilon, later_distance(sgd, lipschitz)));
}

/* So many steps are refined one by one (a second of work at most); what follows them is bounded,
** validly, by a power of the last coefficient. */
#define REFINED_STEPS 1000000

/*
** Repeats d <- d eta(d), where eta is the contraction coefficient at mixing_epsilon(epsilon, d).
** This is valid because the right-hand side increases with d. The logarithms are added with
** compensation (Kahan), so that coefficients close to 1 keep their digits over many steps.
*/
static double iterated_bound(const struct sgd *sgd, double epsilon, struct chain chain) {
  double lipschitz = chain.step(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double distance = later_distance(sgd, lipschitz);
  double sum = chain.stick(epsilon, first_distance(sgd)), low = 0.0;
  double delta = exp(sum), remaining = sgd->length - sgd->index;
  for (long k = 0; remaining > 0.0 && delta > 0.0; k++) {
    double now = epsilon > 0.0 && k < REFINED_STEPS ? 1.0 : remaining;
    double term = now * chain.stick(mixing_epsilon(epsilon, delta), distance) - low;
    if (term == 0.0) break; /* no contraction in this or any later step */
    double next = sum + term;
    low = next > -INFINITY ? (next - sum) - term : 0.0;
    sum = next;
    delta = exp(sum) * exp(-low);
    remaining -= now;
  }
  return delta;
}

static const struct chain gaussian_printed = {gaussian_log_hockey_stick, printed_contraction};
static const struct chain gaussian_tight = {gaussian_log_hockey_stick, tight_contraction};
static const struct chain laplace_printed = {laplace_log_hockey_stick, printed_contraction};
static const struct chain laplace_tight = {laplace_log_hockey_stick, tight_contraction};

/* ---- the theorems ---------------------------------------------------------------------------- */

double sgd_delta_printed(const struct sgd *sgd, double epsilon) {
  return product_bound(sgd, epsilon, gaussian_printed);
}

double sgd_delta_iterated(const struct sgd *sgd, double epsilon) {
  return iterated_bound(sgd, epsilon, gaussian_printed);
}

double sgd_delta_best(const struct sgd *sgd, double epsilon) {
  double rate = sgd_rate_best(sgd);
  if (isnan(rate)) return rate;
  double gaussian = rate < INFINITY ? gaussian_hockey_stick(epsilon, sqrt(rate) * M_SQRT2) : 1.0;
  return fmin(gaussian, iterated_bound(sgd, epsilon, gaussian_tight));
}

double sgd_delta_laplace_printed(const struct sgd *sgd, double epsilon) {
  return product_bound(sgd, epsilon, laplace_printed);
}

double sgd_delta_laplace_iterated(const struct sgd *sgd, double epsilon) {
  return iterated_bound(sgd, epsilon, laplace_printed);
}

double sgd_delta_laplace_best(const struct sgd *sgd, double epsilon) {
  return iterated_bound(sgd, epsilon, laplace_tight);
}

/* sum_{k=0}^{m} q^k = (1 - q^(m+1))/(1 - q) with ln q at hand. */
static double geometric_sum(double log_q, double m) {
  if (log_q == 0.0) return m + 1.0;
  return log_q > -INFINITY ? expm1((m + 1.0) * log_q) / expm1(log_q) : 1.0;
}

double sgd_delta_random_stop(const struct sgd *sgd, double epsilon) {
  double lipschitz = printed_contraction(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double first = gaussian_hockey_stick(epsilon, first_distance(sgd));
  double log_later = gaussian_log_hockey_stick(epsilon, later_distance(sgd, lipschitz));
  return first * (geometric_sum(log_later, sgd->length - sgd->index) / sgd->length);
}

double sgd_delta_random_stop_printed(const struct sgd *sgd, double epsilon) {
  double lipschitz = printed_contraction(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double first = gaussian_hockey_stick(epsilon, first_distance(sgd));
  double log_later = gaussian_log_hockey_stick(epsilon, later_distance(sgd, lipschitz));
  return first > 0.0 ? first / sgd->length / fabs(expm1(log_later)) : 0.0;
}
