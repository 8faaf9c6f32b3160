/* noisy_iteration.c: see math.h.
** Tests: tests/math/test_iteration.c, tests/papers/test_papers_tables.py,
** tests/papers/test_papers_sgd.py, tests/papers/test_papers_accuracy.py */
#include "math/math.h"

#include <float.h>
#include <math.h>

#include "math/numeric.h"

/* ---- Gaussian noise between Lipschitz maps --------------------------------------------------- */

/* Returns alpha ratio^2/2, or 0 if ratio is 0, even at alpha = infinity. */
static double gaussian_divergence(double alpha, struct scaled ratio) {
  if (ratio.mantissa == 0.0) return 0.0;
  return scaled_value(scaled_times(scaled(0.5 * alpha), scaled_square(ratio)));
}

double gaussian_rdp(double alpha, double sensitivity, double sigma) {
  if (sensitivity == 0.0) return 0.0;
  return gaussian_divergence(alpha, scaled_over(scaled(sensitivity), scaled(sigma)));
}

double iterated_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2) {
  return lipschitz_gaussian_rdp(alpha, sensitivity, sigma1, sigma2, 1.0);
}

double lipschitz_gaussian_rdp(double alpha, double sensitivity, double sigma1, double sigma2,
                              double lipschitz) {
  if (sensitivity == 0.0 || lipschitz == 0.0) return 0.0;
  struct scaled first = scaled_square(scaled(sigma1));
  struct scaled second = scaled_square(scaled_over(scaled(sigma2), scaled(lipschitz)));
  struct scaled sigma = scaled_root(scaled_plus(first, second));
  return gaussian_divergence(alpha, scaled_over(scaled(sensitivity), sigma));
}

/* With L = lipschitz and s = -2 ln L, this is (e^s - 1)/(e^((terms+1) s) - 1), for s > 0 in a form
** with negative exponents, which cannot overflow. */
struct scaled inverse_geometric(double lipschitz, double terms) {
  if (terms == 0.0) return scaled(1.0);
  if (lipschitz == 0.0) return scaled(0.0);
  if (lipschitz == 1.0) return scaled(1.0 / (terms + 1.0));
  double s = -2.0 * log(lipschitz);
  if (s < 0.0) return scaled_over(scaled(-expm1(s)), scaled(-expm1((terms + 1.0) * s)));
  struct scaled ratio = scaled_over(scaled(-expm1(-s)), scaled(-expm1(-(terms + 1.0) * s)));
  return scaled_times(ratio, scaled_exp(-terms * s));
}

/* Equation (2) for the path whose moves are proportional to L^(2i): alpha/2
** (distance/sigma)^2/sum_{j=1}^r L^(-2j), where r = steps. */
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps) {
  if (distance == 0.0 || lipschitz == 0.0) return 0.0;
  if (isinf(alpha)) return INFINITY; /* for every ratio > 0, even one that underflows */
  struct scaled ratio = scaled_over(scaled(distance), scaled(sigma));
  ratio = scaled_times(ratio, scaled(lipschitz));
  ratio = scaled_times(ratio, scaled_root(inverse_geometric(lipschitz, steps - 1.0)));
  return gaussian_divergence(alpha, ratio);
}

/* Equation (3): alpha distance^2 L^(r+1)/(2 r sigma^2). */
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps) {
  if (distance == 0.0 || lipschitz == 0.0) return 0.0;
  if (isinf(alpha)) return INFINITY; /* for every ratio > 0, even one that underflows */
  struct scaled square = scaled_square(scaled_over(scaled(distance), scaled(sigma)));
  square = scaled_times(square, scaled_exp((steps + 1.0) * log(lipschitz)));
  square = scaled_over(square, scaled(steps));
  return scaled_value(scaled_times(square, scaled(0.5 * alpha)));
}

/* Returns alpha x/2, or 0 if x is 0, even at alpha = infinity. */
static double half_times(double alpha, struct scaled x) {
  if (x.mantissa == 0.0) return 0.0;
  return scaled_value(scaled_times(scaled_times(scaled(alpha), scaled(0.5)), x));
}

double given_path_rdp(double alpha, const struct path_step *steps, long count) {
  struct scaled product = scaled(1.0), sum = scaled(0.0);
  for (long j = 0; j < count; j++) {
    product = scaled_times(product, scaled(steps[j].lipschitz));
    struct scaled moved = scaled_times(product, scaled(steps[count - 1 - j].shift));
    sum = scaled_plus(sum, scaled_square(scaled_over(moved, scaled(steps[j].sigma))));
  }
  return half_times(alpha, sum);
}

double best_path_rdp(double alpha, const struct path_step *steps, long count, double distance) {
  struct scaled product = scaled(1.0), sum = scaled(0.0);
  for (long j = 0; j < count; j++) {
    product = scaled_times(product, scaled(steps[j].lipschitz));
    if (product.mantissa == 0.0) return 0.0; /* the map is constant, so both outputs are equal */
    sum = scaled_plus(sum, scaled_square(scaled_over(scaled(steps[j].sigma), product)));
  }
  return half_times(alpha, scaled_over(scaled_square(scaled(distance)), sum));
}

/* ---- the contraction of one step ------------------------------------------------------------- */

double sgd_contraction(double eta, double beta, double rho) {
  return fmax(fabs(fma(-eta, rho, 1.0)), fabs(fma(-eta, beta, 1.0)));
}

/* Returns 2 - eta (beta + rho) to full relative precision, with the rounding errors of the sum and
** of the product. */
static double step_margin(double eta, double beta, double rho) {
  double sum = beta + rho;
  double back = sum - beta;
  double sum_low = (beta - (sum - back)) + (rho - back);
  return fma(-eta, sum, 2.0) - eta * sum_low;
}

/* 1 - 2 eta beta rho/(beta + rho) = (1 - eta rho)^2 + eta rho^2 (2/(beta + rho) - eta), a sum of
** two terms >= 0. The tolerance of 8 DBL_EPSILON accepts an eta that is 2/(beta + rho) rounded to a
** double. */
double printed_contraction(double eta, double beta, double rho) {
  double margin = step_margin(eta, beta, rho);
  if (!(margin >= -8.0 * DBL_EPSILON)) return NAN;
  if (beta == 0.0 || rho == 0.0) return 1.0;
  double step = fma(-eta, rho, 1.0);
  double rest = eta * rho * (rho / (beta + rho)) * fmax(margin, 0.0);
  return sqrt(step * step + rest);
}

/* Returns sgd_contraction(), or NaN where the theorems do not apply. */
static double tight_contraction(double eta, double beta, double rho) {
  double printed = printed_contraction(eta, beta, rho);
  return isnan(printed) ? printed : sgd_contraction(eta, beta, rho);
}

typedef double contraction(double eta, double beta, double rho);

/* ---- Renyi: Theorem 5 of Balle et al. -------------------------------------------------------- */

/* Returns 2C^2/noise^2, the rate of the record that the last step reads. */
static struct scaled last_rate(const struct sgd *sgd) {
  struct scaled ratio = scaled_over(scaled(sgd->lipschitz_loss), scaled(sgd->noise));
  return scaled_times(scaled(2.0), scaled_square(ratio));
}

/* sgd_rate_printed(), which is 0 as a scaled number only if the rate is exactly 0. */
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

/* The path of Theorem 4 begins after the gradient of step i, when the two points are at most 2 eta
** C apart, with the noise of step i. Then it has n - i steps with Lipschitz constant L. */
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
  /* At such a small distance, if epsilon and the distance both grow by a factor, the divergence
  ** grows by the same factor, up to a relative error of 1e-28. */
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

/* 2C/noise, the largest distance by which the differing record can move x, in units of the
** noise. */
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

/* Theorems 3 (Laplace) and 4 (Gaussian) and their refinements differ in two functions: the
** hockey-stick divergence of the noise and the contraction of a gradient step. In both theorems 0^0
** is 1. */
struct chain {
  log_hockey_stick *stick;
  contraction *step;
};

/* first * later^(n-i), the hockey-stick divergences of step i and of a later step. */
static double product_bound(const struct sgd *sgd, double epsilon, struct chain chain) {
  double lipschitz = chain.step(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double after = sgd->length - sgd->index;
  double first = chain.stick(epsilon, first_distance(sgd));
  if (after == 0.0 || first == -INFINITY) return exp(first);
  return exp(first + after * chain.stick(epsilon, later_distance(sgd, lipschitz)));
}

/* iterated_bound() computes a new contraction coefficient for so many steps, in at most a second,
** and then keeps the last one: coefficients only decrease, so the bound stays valid. */
#define REFINED_STEPS 1000000

/* Repeats d <- d g(d) for each step after step i, where g(d) is the contraction coefficient of the
** step at mixing_epsilon(epsilon, d), and d g(d) increases with d. Logarithms are added with
** compensation (Kahan), so that many coefficients close to 1 lose no digits. */
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

double geometric_sum(double log_q, double count) {
  if (log_q == 0.0) return count;
  return log_q > -INFINITY ? expm1(count * log_q) / expm1(log_q) : fmin(count, 1.0);
}

static double random_stop(const struct sgd *sgd, double epsilon, int is_printed) {
  double lipschitz = printed_contraction(sgd->eta, sgd->beta, sgd->rho);
  if (isnan(lipschitz)) return lipschitz;
  double first = gaussian_hockey_stick(epsilon, first_distance(sgd));
  double log_later = gaussian_log_hockey_stick(epsilon, later_distance(sgd, lipschitz));
  if (is_printed) return first > 0.0 ? first / sgd->length / fabs(expm1(log_later)) : 0.0;
  return first * (geometric_sum(log_later, sgd->length - sgd->index + 1.0) / sgd->length);
}

double sgd_delta_random_stop(const struct sgd *sgd, double epsilon) {
  return random_stop(sgd, epsilon, 0);
}

double sgd_delta_random_stop_printed(const struct sgd *sgd, double epsilon) {
  return random_stop(sgd, epsilon, 1);
}
