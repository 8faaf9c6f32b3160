/*
** bounded_loss.c: randomized response and mechanisms of bounded range.
** Tests: tests/math/test_mechanisms_accuracy.py
*/
#include "math/bounded_loss.h"

#include <math.h>

#include "math/numeric.h"

/* ---- randomized response --------------------------------------------------------------------- */

/*
** With a = alpha, e = epsilon and the divergence r, the moment e^((a-1) r) is (exp(a e) + exp((1-a)
** e))/(1 + exp(e)) = 1 + 2 sinh(a e/2) sinh((a-1) e/2)/cosh(e/2). For (a-1) e >= 1 the function
** divides the moment by its largest exponential.
*/
double response_rdp(double alpha, double epsilon) {
  double excess = alpha - 1.0;
  if (isinf(alpha) || isinf(epsilon)) return epsilon;
  if (excess * epsilon >= 1.0) {
    double rest = log1p(exp(-epsilon * alpha - epsilon * excess)) - log1p(exp(-epsilon));
    return epsilon + rest / excess;
  }
  double half = 0.5 * excess * epsilon;
  double ratio = half > 1e-4 ? sinh(half) / half : 1.0 + half * half / 6.0;
  double w = epsilon * ratio * exp(half) * -expm1(-alpha * epsilon) / (1.0 + exp(-epsilon));
  return excess * w > 0.0 ? w * (log1p(excess * w) / (excess * w)) : w;
}

static double rate_missing(double epsilon, void *rate) {
  return epsilon * tanh(epsilon / 2.0) - *(double *)rate;
}

/*
** The upper end of the search for the root follows from two bounds. With e = epsilon, e tanh(e/2)
** is at least e^2/3 for e <= 2, and at least 2e/3 for e >= 2.
*/
double response_epsilon(double rate) {
  return root_between(rate_missing, &rate, 0.0, fmax(sqrt(3.0 * rate), 2.0 * rate));
}

/* ---- bounded range --------------------------------------------------------------------------- */

double bounded_range_rdp(double alpha, double epsilon) {
  double square = isinf(alpha) ? INFINITY : alpha * epsilon * (epsilon / 8.0);
  return fmin(square, response_rdp(alpha, epsilon));
}

/*
** Returns the epsilon for mu = 2 z: the logit of Phi(z), times 2. With t = erf(z/sqrt(2)), Phi(z)
** is (1 + t)/2.
*/
static double epsilon_of(double z) {
  double t = erf(z * M_SQRT1_2);
  return 2.0 * (log1p(t) - (t < 0.5 ? log1p(-t) : log(erfc(z * M_SQRT1_2))));
}

static double epsilon_missing(double z, void *epsilon) {
  return epsilon_of(z) - *(double *)epsilon;
}

/*
** The derivative of epsilon_of() is at least its value at 0, 4 sqrt(2/pi) = 3.191... And since
** Phi(-z) <= e^(-z^2/2)/2 <= Phi(z) e^(-z^2/2), epsilon_of(z) is at least z^2.
*/
double bounded_range_gaussian_rate(double epsilon) {
  double z = root_between(epsilon_missing, &epsilon, 0.0, fmin(epsilon / 3.19, sqrt(epsilon)));
  return 2.0 * z * z;
}

double bounded_range_gaussian_epsilon(double rate) {
  return epsilon_of(sqrt(rate / 2.0));
}
