/*
** coupling.c: Gaussian noise added step by step between Lipschitz maps (see coupling.h).
*/
#include "math/coupling.h"

#include <math.h>

#include "math/scaled.h"

/* alpha ratio^2/2, where 0 stays 0 at alpha = infinity. */
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

/*
** With s = -2 ln L: (e^s - 1)/(e^((terms+1) s) - 1). For s > 0 that is divided through by
** e^(terms s).
*/
struct scaled inverse_geometric(double lipschitz, double terms) {
  if (terms == 0.0) return scaled(1.0);
  if (lipschitz == 0.0) return scaled(0.0);
  if (lipschitz == 1.0) return scaled(1.0 / (terms + 1.0));
  double s = -2.0 * log(lipschitz);
  if (s < 0.0) return scaled_over(scaled(-expm1(s)), scaled(-expm1((terms + 1.0) * s)));
  struct scaled ratio = scaled_over(scaled(-expm1(-s)), scaled(-expm1(-(terms + 1.0) * s)));
  return scaled_times(ratio, scaled_exp(-terms * s));
}

/* Equation (2) along Delta_i proportional to L^(2i): alpha/2 (distance/sigma)^2/sum_1^r L^(-2j). */
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps) {
  if (distance == 0.0 || lipschitz == 0.0) return 0.0;
  if (isinf(alpha)) return INFINITY; /* however small the ratio, even where it underflows */
  struct scaled ratio = scaled_over(scaled(distance), scaled(sigma));
  ratio = scaled_times(ratio, scaled(lipschitz));
  ratio = scaled_times(ratio, scaled_root(inverse_geometric(lipschitz, steps - 1.0)));
  return gaussian_divergence(alpha, ratio);
}

/* Equation (3): alpha distance^2 L^(r+1)/(2 r sigma^2). */
double printed_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                             double steps) {
  if (distance == 0.0 || lipschitz == 0.0) return 0.0;
  if (isinf(alpha)) return INFINITY; /* however small the ratio, even where it underflows */
  struct scaled square = scaled_square(scaled_over(scaled(distance), scaled(sigma)));
  square = scaled_times(square, scaled_exp((steps + 1.0) * log(lipschitz)));
  square = scaled_over(square, scaled(steps));
  return scaled_value(scaled_times(square, scaled(0.5 * alpha)));
}
