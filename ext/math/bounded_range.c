/*
** bounded_range.c: see bounded_range.h.
** Tests: tests/math/test_mechanisms_accuracy.py
*/
#include "math/bounded_range.h"

#include <math.h>

#include "math/mixing.h"
#include "math/root.h"

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
