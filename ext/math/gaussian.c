/* gaussian.c: see math.h.
**
** Let phi be the density of the standard normal distribution, Q its upper tail and M = Q/phi the
** Mills ratio. With mu = sqrt(2 rate), A = (epsilon - rate)/mu and B = A + mu = (epsilon +
** rate)/mu,
**
**     delta = Q(A) - e^epsilon Q(B) = phi(A) (M(A) - M(B)),
**     1 - delta = phi(A) (M(-A) + M(B)),
**
** because e^epsilon phi(B) = phi(A). A direct computation of Q(A) - e^epsilon Q(B) gives NaN beyond
** epsilon = 709 and loses all digits in the tails. The products of phi and M lose no digits,
** provided that the code observes three rules:
**
** 1. phi(A) is a constant times exp(-A^2/2), so the ABSOLUTE error of A^2/2 must be at most about
**    1e-16, although A^2/2 can be 700. A^2/2 is (epsilon - rate)^2/(4 rate). half_square() computes
**    this quotient in twice the precision.
** 2. For small mu, M(A) - M(B) is computed as the integral of -M' = 1 - t M(t) over [A, B]. For
**    large mu the subtraction loses no digits. M and M' come from one continued fraction.
** 3. Each tail of the profile is stored as an exponent and a factor (struct tail), so its logarithm
**    exists even if its value underflows. Where delta is close to 1, the tail is 1 - delta.
**
** The code does not use gsl_sf_hazard() for M, because its relative error reaches 1.2e-13 (measured
** near t = 24).
** Tests: tests/math/test_gaussian.c, tests/functions/test_planning.py */
#include "math/math.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_roots.h>

#include "math/numeric.h"

/* ---- roots (numeric.h), by Brent's method ---------------------------------------------------- */

/* The largest number of steps. Brent's method usually takes ten to twenty steps. If both ends have
** the same order of magnitude, bisection takes about 64 steps. In the worst case, Brent's method
** takes a small multiple of this number. */
#define ROOT_STEPS 400

/* The solver's state is on the stack, so finding a root needs no memory from the heap. ROOT_STATE
** is its size in units of max_align_t. */
#define ROOT_STATE 16

double root_between(double (*function)(double, void *), void *parameters, double low, double high) {
  gsl_function equation = {function, parameters};
  max_align_t state[ROOT_STATE];
  gsl_root_fsolver solver = {.type = gsl_root_fsolver_brent, .state = state};
  /* This is never true, because the state of GSL's Brent solver has the size of eight doubles. */
  if (solver.type->size > sizeof state) return NAN;
  double root = NAN;
  /* This call fails if the function has the same sign at both ends. */
  int status = gsl_root_fsolver_set(&solver, &equation, low, high);
  for (int step = 0; status == GSL_SUCCESS && step < ROOT_STEPS; step++) {
    status = gsl_root_fsolver_iterate(&solver);
    if (status != GSL_SUCCESS) break;
    double a = gsl_root_fsolver_x_lower(&solver), b = gsl_root_fsolver_x_upper(&solver);
    if (gsl_root_test_interval(a, b, 0.0, 2.0 * DBL_EPSILON) == GSL_SUCCESS) {
      root = gsl_root_fsolver_root(&solver);
      break;
    }
  }
  return root;
}

/* ---- the Mills ratio ------------------------------------------------------------------------- */

/* mills(t) uses a continued fraction from here on, and the error function for smaller t. */
#define FRACTION_FROM 2.0

/* Shorter intervals are integrated by Kronrod's rule of 21 points, which is exact for polynomials
** of degree up to 31, and gives the integral of M' to the last digit: M' is an entire function, and
** on the ellipse around the interval with half axes of about 5 at most about exp(5.5^2/2). So the
** error is of the order of 40^-32 exp(16), which is 1e-44. */
#define SHORT 0.5

/* Returns K of Laplace's continued fraction M(t) = 1/(t + K), K = 1/(t + 2/(t + 3/(t + ...))), for
** t >= 2. The loop computes the tails T_n = n/(t + T_(n+1)) from the last term to the first. The
** first guess for T_n is the root of T^2 + t T = n. Term n multiplies the error of the guess by
** T_n^2/n, which is about exp(-t/sqrt n). All terms together multiply this error by about exp(-2 t
** sqrt terms), which is below 1e-14. */
static double fraction(double t) {
  int terms = 12 + (int)(240.0 / (t * t));
  double tail = 0.5 * (sqrt(t * t + 4.0 * terms) - t);
  for (int n = terms - 1; n >= 1; n--) {
    tail = n / (t + tail);
  }
  return tail;
}

/* Returns M(t) = Q(t)/phi(t) for t > -1. */
static double mills(double t) {
  if (t >= FRACTION_FROM) return 1.0 / (t + fraction(t));
  return sqrt(M_PI_2) * exp(0.5 * t * t) * erfc(t * M_SQRT1_2);
}

/* Returns -M'(t) = 1 - t M(t) for t > -1; for large t by the continued fraction, as it would
** cancel. */
static double mills_slope(double t) {
  if (t < FRACTION_FROM) return 1.0 - t * mills(t);
  double k = fraction(t);
  return k / (t + k);
}

static double slope_within(double u, void *interval) {
  const double *ends = interval;
  return mills_slope(ends[0] + ends[1] * u);
}

/* Returns M(a) - M(a + width) for width < SHORT. gsl_integration_qng() allocates no memory. Its
** status is ignored: 21 points are enough, and the error that GSL estimates is rounding only. */
static double mills_integral(double a, double width) {
  double interval[] = {a, width}, integral, error;
  gsl_function slope = {slope_within, interval};
  size_t points;
  gsl_integration_qng(&slope, 0.0, 1.0, 0.0, 1e-13, &integral, &error, &points);
  return integral * width;
}

/* Returns M(a) - M(b) for b = a + width and a > -1. From FRACTION_FROM on it is (width - (K(a) -
** K(b))) M(a) M(b), where K(a) - K(b) is a small correction. */
static double mills_difference(double a, double b, double width) {
  if (width < SHORT) return mills_integral(a, width);
  if (a < FRACTION_FROM) return mills(a) - mills(b);
  double ka = fraction(a), kb = fraction(b);
  return (width - (ka - kb)) / (a + ka) / (b + kb);
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* The number factor * exp(-(high + low)). `low` is the rounding error of `high`. */
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

/* Sets *high + *low to A^2/2 = d (d/4)/rate with d = epsilon - rate, with the rounding error of
** each operation (Dekker, Knuth): an FMA gives the remainder of a division and the error of a
** product exactly. */
static void half_square(double rate, double epsilon, double *high, double *low) {
  double d = epsilon - rate;
  double back = d - epsilon;
  double d_low = (epsilon - (d - back)) - (rate + back);
  double q = 0.25 * d / rate;
  double q_low = (fma(-q, rate, 0.25 * d) + 0.25 * d_low) / rate;
  *high = d * q;
  *low = *high < INFINITY ? fma(d, q, -*high) + d * q_low + d_low * q : 0.0;
}

/* One point of the profile. The tail is delta, or 1 - delta where 1 - delta is more accurate. */
struct profile {
  int complement; /* 1 if the tail is 1 - delta */
  struct tail tail;
};

/* Returns the point of the profile at `epsilon` >= 0, rate > 0. A tail 1 - delta is below 0.86, and
** a tail delta is below 0.5. */
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

/* Returns ln(delta/(1 - delta)), which increases with the rate and decreases with epsilon, and is
** accurate for delta close to 0 and to 1. */
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

/* The equation log_odds(rate, epsilon) = target. Either rate or epsilon is unknown. */
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

/* The upper end follows from a bound: if epsilon >= rate, then delta <= exp(-(epsilon - rate)^2/(4
** rate))/2, because Q(A) <= exp(-A^2/2)/2. Therefore epsilon is at most rate + 2 sqrt(rate
** ln(1/delta)). */
double gaussian_epsilon(double rate, double delta) {
  if (!in_domain(rate, 0.0) || !(delta > 0.0 && delta < 1.0)) return NAN;
  if (rate == 0.0) return 0.0;
  struct equation equation = {rate, 0.0, log(delta) - log1p(-delta)};
  if (epsilon_residual(0.0, &equation) <= 0.0) return 0.0;
  double high = (rate + 2.0 * sqrt(rate) * sqrt(-log(delta))) * (1.0 + 4.0 * DBL_EPSILON);
  if (high == INFINITY) return INFINITY;
  return root_between(epsilon_residual, &equation, 0.0, high);
}

/* Two bounds on delta give rates below the root: that of gaussian_epsilon(), and delta <= mu/sqrt(2
** pi). `low` is half of the larger rate, so that a rounding error cannot lift it above the root.
** The bounds are sharp up to a moderate factor, so a few multiplications by 4 give a rate `high`
** above the root. */
double gaussian_rate(double epsilon, double delta) {
  if (!in_domain(0.0, epsilon) || epsilon == INFINITY || !(delta > 0.0 && delta < 1.0)) return NAN;
  struct equation equation = {0.0, epsilon, log(delta) - log1p(-delta)};
  double l = -log(delta);
  double root = epsilon / (sqrt(epsilon + l) + sqrt(l));
  double low = 0.5 * fmax(root * root, M_PI * delta * delta);
  if (low < DBL_MIN) return 0.0; /* `low` is not a normal double; 0 is a valid lower bound */
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

/* Returns the slack that lowers the rate by one part in 2^43. Near this delta, the rate is
** proportional to delta^p for some p between 0 and 2, which a difference quotient gives to a few
** digits. */
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
  /* If more slack is set aside, fewer draws fit into the rest of the budget. The loop finds the
  ** largest slack that the draws of the remaining budget can use up. */
  for (int i = 0; i < 128 && low < high; i++) {
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
