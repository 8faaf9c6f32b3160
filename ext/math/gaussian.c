/*
** gaussian.c: the exact privacy profile of the Gaussian mechanism (see gaussian.h).
**
** With mu = sqrt(2 rate), A = (epsilon - rate)/mu and B = A + mu = (epsilon + rate)/mu,
**
**     delta = Q(A) - e^epsilon Q(B) = phi(A) (M(A) - M(B)),         M = Q/phi (Mills ratio),
**     1 - delta = phi(A) (M(-A) + M(B)),
**
** because e^epsilon phi(B) = phi(A). Computed directly, the first difference is NaN beyond epsilon
** = 709 and loses all digits in the tails. The products lose none, under three conditions:
**
** 1. phi(A) needs A^2/2 to an ABSOLUTE error of an ulp of 1, with A^2/2 up to 700. Without the
**    square root it is (epsilon - rate)^2/(4 rate), which is computed in twice the precision.
** 2. M(A) - M(B) is the integral over [A, B] of -M' = 1 - t M(t) for small mu; elsewhere the
**    difference is taken where it does not cancel. M and M' come from one continued fraction.
** 3. Each tail of the profile is kept as (exponent, factor): it has a logarithm when it underflows,
**    and near delta = 1 it is 1 - delta that is computed.
**
** gsl_sf_hazard() would give M too, but only to 1.2e-13 (measured, near t = 24).
*/
#include "math/gaussian.h"

#include <float.h>
#include <math.h>

#include <gsl/gsl_integration.h>

#include "math/root.h"

/*
** From here on the Mills ratio is computed by a continued fraction, below it by an error function.
*/
#define FRACTION_FROM 2.0

/*
** The longest interval on which Kronrod's rule of 21 points, exact to degree 31, integrates M' to
** the last digit. M' is entire; on the ellipse around the interval with half axes of about 5 it is
** at most of size exp(5.5^2/2), so the error is of the order of 40^-32 exp(16), 1e-44.
*/
#define SHORT 0.5

/* ---- the Mills ratio ------------------------------------------------------------------------- */

/*
** Continued fraction of Laplace, M(t) = 1/(t + K), K = 1/(t + 2/(t + 3/(t + ...))), for t >= 2.
** Its tail T_n = n/(t + T_(n+1)) starts close to the root of T^2 + t T = n. Each term shrinks an
** error by T_n^2/n, about exp(-t/sqrt n), and all of them by exp(-2 t sqrt terms), below 1e-14.
*/
static double fraction(double t) {
  int terms = 12 + (int)(240.0 / (t * t));
  double tail = 0.5 * (sqrt(t * t + 4.0 * terms) - t);
  for (int n = terms - 1; n >= 1; n--) {
    tail = n / (t + tail);
  }
  return tail;
}

/* M(t) = Q(t)/phi(t) for t > -1. */
static double mills(double t) {
  if (t >= FRACTION_FROM) return 1.0 / (t + fraction(t));
  return sqrt(M_PI_2) * exp(0.5 * t * t) * erfc(t * M_SQRT1_2);
}

/* -M'(t) = 1 - t M(t) for t > -1, without the cancellation of this formula for large t. */
static double mills_slope(double t) {
  if (t < FRACTION_FROM) return 1.0 - t * mills(t);
  double k = fraction(t);
  return k / (t + k);
}

static double slope_within(double u, void *interval) {
  const double *ends = interval;
  return mills_slope(ends[0] + ends[1] * u);
}

/*
** M(a) - M(a + width) for width < SHORT. The rule allocates no memory, so it cannot fail. Its
** status can be ignored: 21 points are enough, and the error that it reports is only rounding.
*/
static double mills_integral(double a, double width) {
  double interval[] = {a, width}, integral, error;
  gsl_function slope = {slope_within, interval};
  size_t points;
  gsl_integration_qng(&slope, 0.0, 1.0, 0.0, 1e-13, &integral, &error, &points);
  return integral * width;
}

/*
** M(a) - M(b), b = a + width, for a > -1. Far out M(a) - M(b) = (width - (K(a) - K(b))) M(a) M(b),
** in which the differences of K are a small correction.
*/
static double mills_difference(double a, double b, double width) {
  if (width < SHORT) return mills_integral(a, width);
  if (a < FRACTION_FROM) return mills(a) - mills(b);
  double ka = fraction(a), kb = fraction(b);
  return (width - (ka - kb)) / (a + ka) / (b + kb);
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* The number exp(-(high + low)) factor; low is the rounding error of high. */
struct tail {
  double high, low;
  double factor;
};

static double tail_value(struct tail tail) {
  return exp(-tail.high) * (tail.factor - tail.factor * tail.low);
}

static double tail_log(struct tail tail) {
  return log(tail.factor) - tail.low - tail.high;
}

/*
** A^2/2 = d (d/4)/rate with d = epsilon - rate, each operation with its rounding error (Dekker,
** Knuth; the remainder of a division and the error of a product are exact in an FMA).
*/
static void half_square(double rate, double epsilon, double *high, double *low) {
  double d = epsilon - rate;
  double back = d - epsilon;
  double d_low = (epsilon - (d - back)) - (rate + back);
  double q = 0.25 * d / rate;
  double q_low = (fma(-q, rate, 0.25 * d) + 0.25 * d_low) / rate;
  *high = d * q;
  *low = *high < INFINITY ? fma(d, q, -*high) + d * q_low + d_low * q : 0.0;
}

/* One point of the profile: delta, or 1 - delta where that is more accurate. */
struct profile {
  int complement; /* whether the tail is 1 - delta */
  struct tail tail;
};

/*
** rate > 0, epsilon >= 0. If it stores 1 - delta, this is below 0.86; if it stores delta, this is
** below 0.5.
*/
static struct profile profile_at(double rate, double epsilon) {
  double mu = M_SQRT2 * sqrt(rate);
  double a = (epsilon - rate) / mu, b = epsilon / mu + rate / mu;
  struct profile profile = {a < 0.0 && mu >= SHORT, {0.0, 0.0, 0.0}};
  struct tail *tail = &profile.tail;
  half_square(rate, epsilon, &tail->high, &tail->low);
  if (tail->high < INFINITY) {
    double factor = profile.complement ? mills(-a) + mills(b) : mills_difference(a, b, mu);
    tail->factor = factor * (M_SQRT1_2 * M_2_SQRTPI * 0.5);
  }
  return profile;
}

/*
** ln(delta/(1 - delta)). It increases with the rate and decreases with epsilon, and is accurate in
** both tails.
*/
static double log_odds(double rate, double epsilon) {
  struct profile profile = profile_at(rate, epsilon);
  double odds = tail_log(profile.tail) - log1p(-tail_value(profile.tail));
  return profile.complement ? -odds : odds;
}

static int in_domain(double rate, double epsilon) {
  return rate >= 0.0 && rate < INFINITY && epsilon >= 0.0;
}

double gaussian_delta(double rate, double epsilon) {
  if (!in_domain(rate, epsilon)) return NAN;
  if (rate == 0.0 || epsilon == INFINITY) return 0.0;
  struct profile profile = profile_at(rate, epsilon);
  double value = tail_value(profile.tail);
  return profile.complement ? 1.0 - value : value;
}

double gaussian_log_delta(double rate, double epsilon) {
  if (!in_domain(rate, epsilon)) return NAN;
  if (rate == 0.0 || epsilon == INFINITY) return -INFINITY;
  struct profile profile = profile_at(rate, epsilon);
  return profile.complement ? log1p(-tail_value(profile.tail)) : tail_log(profile.tail);
}

/* ---- its inverses ---------------------------------------------------------------------------- */

/* The equation log_odds(rate, epsilon) = target, in which one of the two is unknown. */
struct equation {
  double rate, epsilon;
  double target;
};

static double epsilon_residual(double epsilon, void *pointer) {
  const struct equation *equation = pointer;
  return log_odds(equation->rate, epsilon) - equation->target;
}

static double rate_residual(double rate, void *pointer) {
  const struct equation *equation = pointer;
  return log_odds(rate, equation->epsilon) - equation->target;
}

/*
** The bracket: delta <= exp(-(epsilon - rate)^2/(4 rate))/2 for epsilon >= rate (Q(A) <=
** exp(-A^2/2)/2), so epsilon is at most rate + 2 sqrt(rate ln(1/delta)).
*/
double gaussian_epsilon(double rate, double delta) {
  if (!in_domain(rate, 0.0) || !(delta > 0.0 && delta < 1.0)) return NAN;
  if (rate == 0.0) return 0.0;
  struct equation equation = {rate, 0.0, log(delta) - log1p(-delta)};
  if (epsilon_residual(0.0, &equation) <= 0.0) return 0.0;
  double high = (rate + 2.0 * sqrt(rate) * sqrt(-log(delta))) * (1.0 + 4.0 * DBL_EPSILON);
  if (high == INFINITY) return INFINITY;
  return root_between(epsilon_residual, &equation, 0.0, high);
}

/*
** The bracket: two bounds give rates that are certainly low enough, the bound above solved for the
** rate, and delta <= mu/sqrt(2 pi). They are halved so that rounding cannot lift them above the
** root. The upper end is found in a few steps, because both bounds are sharp up to a moderate
** factor.
*/
double gaussian_rate(double epsilon, double delta) {
  if (!in_domain(0.0, epsilon) || epsilon == INFINITY || !(delta > 0.0 && delta < 1.0)) return NAN;
  struct equation equation = {0.0, epsilon, log(delta) - log1p(-delta)};
  double l = -log(delta);
  double root = epsilon / (sqrt(epsilon + l) + sqrt(l));
  double low = 0.5 * fmax(root * root, M_PI * delta * delta);
  if (low < DBL_MIN) return 0.0; /* not a normal double: 0 is the safe answer */
  double high = 4.0 * low;
  while (high < INFINITY && rate_residual(high, &equation) < 0.0) {
    high *= 4.0;
  }
  return high < INFINITY ? root_between(rate_residual, &equation, low, high) : low;
}

/* ---- the lattice ----------------------------------------------------------------------------- */

#define SLACK_FLOOR (UINT64_C(1) << 20)

double gaussian_lattice_slack(uint64_t variance) {
  if (variance < SLACK_FLOOR) return NAN;
  double v = (double)variance;
  double square = v - 1.0 / 12.0;
  return 0.0035 * (1.0 + 1.12 / sqrt(square)) / (square * square) +
         1.1 * exp(-2.0 * M_PI * M_PI * v);
}

double gaussian_rate_beside(double epsilon, double delta, double slack) {
  double reserved = slack > 0.0 ? slack * (1.0 + exp(epsilon)) : 0.0;
  return reserved < 0.5 * delta ? gaussian_rate(epsilon, delta - reserved) : NAN;
}

/*
** The slack that lowers the rate by one part in 2^43 only. The rate grows like delta^p, where p is
** between 0 and 2. A difference quotient gives p to a few digits.
*/
static double free_slack(double epsilon, double delta, double rate) {
  const double step = 0x1p-20;
  double power = (1.0 - gaussian_rate(epsilon, delta * (1.0 - step)) / rate) / step;
  double reserved = delta * fmin(0x1p-43 / power, 0x1p-20);
  return reserved / (1.0 + exp(epsilon));
}

double gaussian_slack_beside(double epsilon, double delta, double rate) {
  double most = gaussian_rate(epsilon, delta);
  double low = free_slack(epsilon, delta, most), high = most / rate * GAUSSIAN_DRAW_SLACK;
  if (!(low > 0.0) || !(high < INFINITY)) return NAN;
  for (int i = 0; i < 128 && low < high; i++) { /* the largest covered slack */
    double middle = sqrt(low) * sqrt(high);
    double draws = gaussian_rate_beside(epsilon, delta, middle) / rate;
    if (draws * GAUSSIAN_DRAW_SLACK >= middle) {
      low = middle;
    } else {
      high = middle;
    }
    if (high <= low * (1.0 + 4.0 * DBL_EPSILON)) break;
  }
  return low;
}
