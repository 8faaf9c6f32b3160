/* coupling.c: see coupling.h. Tests: tests/papers/test_papers_tables.py */
#include "math/coupling.h"

#include <math.h>

#include "math/scaled.h"

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

/*
** With L = lipschitz and s = -2 ln L, the result is (e^s - 1)/(e^((terms+1) s) - 1). For s > 0 the
** function expands this fraction so that it contains only negative exponents, which cannot
** overflow.
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

/*
** Returns equation (2) for the path whose moves Delta_i are proportional to L^(2i): alpha/2
** (distance/sigma)^2/sum_{j=1}^r L^(-2j), where r = steps.
*/
double path_iteration_rdp(double alpha, double distance, double sigma, double lipschitz,
                          double steps) {
  if (distance == 0.0 || lipschitz == 0.0) return 0.0;
  if (isinf(alpha)) return INFINITY; /* for every ratio > 0, even one that underflows */
  struct scaled ratio = scaled_over(scaled(distance), scaled(sigma));
  ratio = scaled_times(ratio, scaled(lipschitz));
  ratio = scaled_times(ratio, scaled_root(inverse_geometric(lipschitz, steps - 1.0)));
  return gaussian_divergence(alpha, ratio);
}

/* Returns equation (3): alpha distance^2 L^(r+1)/(2 r sigma^2). */
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
