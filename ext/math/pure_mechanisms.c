/* pure_mechanisms.c: see math.h.
** Tests: tests/math/test_laplace.c, tests/papers/test_papers_accuracy.py,
** tests/math/test_mechanisms_accuracy.py */
#include "math/math.h"

#include <math.h>

#include "math/numeric.h"

/* Returns 2 (e^x - 1 - x)/x^2, which is 1 at x = 0. gsl_sf_exprel_2() would lose up to eleven
** digits, because it computes the difference e^x - 1 - x directly for every |x| above 0.002. */
static double exponential_remainder(double x) {
  if (fabs(x) > 1.0) return 2.0 * (expm1(x) - x) / x / x;
  double sum = 0.0;
  for (int k = 20; k > 2; k--) {
    sum = (1.0 + sum) * x / k; /* Horner's rule for the sum of 2 x^j/(j+2)! over j >= 1 */
  }
  return 1.0 + sum;
}

/* Returns r(z), the divergence of order a = alpha at a distance of z scales: in the paper
** ln(g)/(a-1) with g = a/(2a-1) e^(z(a-1)) + (a-1)/(2a-1) e^(-za). For z(a-1) >= 1, g is divided by
** its larger exponential; otherwise g - 1 is a sum of positive terms. */
static double divergence(double alpha, double z) {
  double excess = alpha - 1.0;
  if (isinf(alpha) || isinf(z)) return z;
  /* The formula below could overflow in z^2. */
  if (excess == 0.0 && z > 1.0) return z + expm1(-z);
  double share = alpha < 1e300 ? excess / (alpha + excess) : 0.5; /* (a-1)/(2a-1) */
  if (z * excess >= 1.0) {
    return z + log1p(share * expm1(-z * alpha - z * excess)) / excess;
  }
  double above = share * exponential_remainder(z * excess);
  double below = (1.0 - share) * exponential_remainder(-z * alpha);
  double w = 0.5 * z * (z * alpha) * (above + below); /* (g - 1)/(a - 1) */
  return excess * w > 0.0 ? w * (log1p(excess * w) / (excess * w)) : w;
}

double laplace_rdp(double alpha, double sensitivity, double scale) {
  return divergence(alpha, sensitivity / scale);
}

static double rate_missing(double z, void *rate) {
  return divergence(1.0, z) - *(double *)rate;
}

/* The upper end follows from two bounds: z + e^-z - 1 is at least z^2/3 for z <= 1, and z - 1 for
** every z. */
double laplace_distance(double rate) {
  return root_between(rate_missing, &rate, 0.0,
                      rate < 0.25 ? sqrt(3.0 * rate) : (rate + 1.0) * (1.0 + 0x1p-50));
}

/* ---- discrete -------------------------------------------------------------------------------- */

/* Returns ln(sinh(ky)/(ky)) - ln(sinh(y)/y) for k = 1 + 2b and gap = k^2 - 1. For ky < 0.25 it is
** the series sum_m c_m y^2m (k^2m - 1), where c_m = 4^m B_2m/(2m (2m)!) and B_2m is a Bernoulli
** number; k^2m - 1 is gap times a sum of powers, so nothing cancels. For larger ky it is a sum of
** three terms of the order of b, which lose few digits by cancellation. */
static double sinh_gain(double b, double gap, double y) {
  static const double c[] = {1 / 6.0,      -1 / 180.0,          1 / 2835.0,     -1 / 37800.0,
                             1 / 467775.0, -691 / 3831077250.0, 2 / 127702575.0};
  double k = 1.0 + 2.0 * b, more = 2.0 * b * y, sum = 0.0, powers = 1.0, square = 1.0;
  if (k * y >= 0.25) return more + log1p(-expm1(-2.0 * more) / expm1(2.0 * y)) - log1p(2.0 * b);
  for (int m = 0; m < 7; m++) {
    square *= y * y;
    sum += c[m] * square * powers;
    powers = powers * k * k + 1.0;
  }
  return gap * sum;
}

/* Let a be the order, s the sensitivity and t the scale. With h = 1/t, p = e^-h, z = s h, b = a -
** 1, k = 2a - 1, the moment of the privacy loss is
**     e^(b r) = 1 + tanh(h/2) ((e^(bz) - 1)(1 - e^(-az))/(1 - p) + e^(-z/2) (D(k) - D(1))),
**     D(k) = sinh((s-1) k h/2)/sinh(k h/2).
** This form follows because the outcomes y and s - y have opposite privacy losses l and -l: each
** such pair adds 4 e^(-z/2) sinh(b l/2) sinh(a l/2) to the moment. All terms are positive, so
** nothing cancels. For bz >= 1 the function uses the sum of exponentials instead and divides it by
** the largest exponential. */
double discrete_laplace_rdp(double alpha, double sensitivity, double scale) {
  double h = 1.0 / scale, z = sensitivity / scale, rest = (sensitivity - 1.0) / scale;
  double b = alpha - 1.0, k = alpha + b, p = exp(-h);
  if (isinf(alpha)) return z;
  if (b * z >= 1.0) {
    double inner = -expm1(-h) * -expm1(-k * rest) / expm1(k * h);
    return z + log((1.0 + exp(-k * z) + inner) / (1.0 + p)) / b;
  }
  double gap = 4.0 * alpha * b;
  double gain = sinh_gain(b, gap, rest / 2.0) - sinh_gain(b, gap, h / 2.0);
  double inner = rest > 0.0 ? exp(-z / 2.0) * sinh(rest / 2.0) / sinh(h / 2.0) * expm1(gain) : 0.0;
  double outer = expm1(b * z) * -expm1(-alpha * z) / -expm1(-h);
  return log1p(tanh(h / 2.0) * (outer + inner)) / b;
}

/* The derivative r'(z) for finite alpha, up to a factor that depends on alpha only. It is 0 at z =
** 0 and increases. */
static double slope(double alpha, double z) {
  double exponent = -z * alpha - z * (alpha - 1.0);
  return -expm1(exponent) / (1.0 + (alpha - 1.0) / alpha * exp(exponent));
}

/* Minimises F(s) = r(s/near) + r((D-s)/far), where D = sensitivity, near <= far, and the noises
** cover the distances s and D - s. F' increases and has its zero in (0, D/2], which bisection finds
** down to neighbouring doubles. F is flat at its minimum, so its value there is as accurate as
** r. */
double iterated_laplace_rdp(double alpha, double sensitivity, double scale1, double scale2) {
  double near = fmin(scale1, scale2), far = fmax(scale1, scale2);
  if (isinf(alpha) || sensitivity == 0.0) return sensitivity / far;
  double low = 0.0, high = 0.5 * sensitivity;
  while (near < far) {
    double middle = low + 0.5 * (high - low);
    if (middle <= low || middle >= high) break;
    double near_slope = slope(alpha, middle / near);
    double far_slope = slope(alpha, (sensitivity - middle) / far) * (near / far);
    if (near_slope < far_slope) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return divergence(alpha, high / near) + divergence(alpha, (sensitivity - high) / far);
}

/* Let a be the larger scale, b the smaller scale and u = |x| (1/b - 1/a). The density is
** e^(-|x|/a)/(2(a+b)) (1 + (|x|/a) (1 - e^-u)/u). The formula that the paper prints for a != b is a
** difference of two densities, which become equal as a -> b. The formula here has no such
** cancellation. */
double laplace2_density(double x, double scale1, double scale2) {
  double a = fmax(scale1, scale2), b = fmin(scale1, scale2);
  double distance = fabs(x) / a;
  double u = x == 0.0 || a == b ? 0.0 : fabs(x) / b * ((a - b) / a);
  double bend = u > 0.0 ? -expm1(-u) / u : 1.0;
  if (distance > 1e5) return 0.0;
  struct scaled peak = scaled_over(scaled(0.5 / (1.0 + b / a)), scaled(a));
  struct scaled tail = scaled_times(scaled_exp(-distance), scaled(1.0 + distance * bend));
  return scaled_value(scaled_times(peak, tail));
}

/* Returns ln P(S > x) for x >= 0, where S is the sum of n = `terms` noises of scale 1. S is the
** difference of two gamma variables of shape n. Each of them is the time of the n-th event of a
** Poisson process. S exceeds x if the first process has fewer than n events up to the time x + T,
** where T is the time of the n-th event of the second process. The first process has i events up to
** x with probability e^-x x^i/i!. After x, it has j further events up to x + T with probability C(n
** - 1 + j, j) 2^-(n + j). */
static double log_sum_tail(int terms, double x) {
  double sum = 0.0, beyond = 0.0, after = ldexp(1.0, -terms), before = 1.0;
  double shares[100];
  for (int j = 0; j < terms; j++) { /* probability of at most j further events */
    beyond += after;
    shares[j] = beyond;
    after *= (double)(terms + j) / (2.0 * (j + 1));
  }
  for (int i = 0; i < terms; i++) {
    sum += before * shares[terms - 1 - i];
    before *= x / (i + 1);
  }
  return log(sum) - x;
}

struct sum_tail {
  int terms;
  double log_probability;
};

static double tail_missing(double x, void *context) {
  const struct sum_tail *wanted = context;
  return wanted->log_probability - log_sum_tail(wanted->terms, x);
}

double laplace_sum_quantile(int terms, double probability) {
  struct sum_tail wanted = {terms, log(probability)};
  if (probability >= 0.5) return 0.0;
  return root_between(tail_missing, &wanted, 0.0, 8.0 * terms - 2.0 * wanted.log_probability);
}

double laplace2_epsilon(double sensitivity, double scale1, double scale2) {
  return sensitivity / fmax(scale1, scale2);
}

double laplace_hockey_stick(double epsilon, double distance) {
  return distance > epsilon ? -expm1(0.5 * (epsilon - distance)) : 0.0;
}

double laplace_log_hockey_stick(double epsilon, double distance) {
  if (!(distance > epsilon)) return -(double)INFINITY;
  double half = 0.5 * (epsilon - distance);
  return half > -0.5 ? log(-expm1(half)) : log1p(-exp(half));
}

/* ---- randomized response --------------------------------------------------------------------- */

/* With a = alpha, e = epsilon and the divergence r, the moment e^((a-1) r) is (exp(a e) + exp((1-a)
** e))/(1 + exp(e)) = 1 + 2 sinh(a e/2) sinh((a-1) e/2)/cosh(e/2). For (a-1) e >= 1 the function
** divides the moment by its largest exponential. */
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

static double response_missing(double epsilon, void *rate) {
  return epsilon * tanh(epsilon / 2.0) - *(double *)rate;
}

/* The upper end follows from two bounds: e tanh(e/2) is at least e^2/3 for e <= 2, and 2e/3 for e
** >= 2. */
double response_epsilon(double rate) {
  return root_between(response_missing, &rate, 0.0, fmax(sqrt(3.0 * rate), 2.0 * rate));
}

/* ---- bounded range --------------------------------------------------------------------------- */

double bounded_range_rdp(double alpha, double epsilon) {
  double square = isinf(alpha) ? INFINITY : alpha * epsilon * (epsilon / 8.0);
  return fmin(square, response_rdp(alpha, epsilon));
}

/* The epsilon for mu = 2 z: the logit of Phi(z), times 2. With t = erf(z/sqrt(2)), Phi(z) is (1 +
** t)/2. */
static double epsilon_of(double z) {
  double t = erf(z * M_SQRT1_2);
  return 2.0 * (log1p(t) - (t < 0.5 ? log1p(-t) : log(erfc(z * M_SQRT1_2))));
}

static double epsilon_missing(double z, void *epsilon) {
  return epsilon_of(z) - *(double *)epsilon;
}

/* The derivative of epsilon_of() is at least its value at 0, 4 sqrt(2/pi) = 3.191... And since
** Phi(-z) <= e^(-z^2/2)/2 <= Phi(z) e^(-z^2/2), epsilon_of(z) is at least z^2. */
double bounded_range_gaussian_rate(double epsilon) {
  double z = root_between(epsilon_missing, &epsilon, 0.0, fmin(epsilon / 3.19, sqrt(epsilon)));
  return 2.0 * z * z;
}

double bounded_range_gaussian_epsilon(double rate) {
  return epsilon_of(sqrt(rate / 2.0));
}
