/*
** renyi.c: Renyi orders and their conversion to (epsilon, delta) (see renyi.h).
**
** In terms of u = alpha - 1 and the slack left by an order, S(u) = -ln(alpha delta), the
** conversion is
**     epsilon = r(alpha) - ln(1 + 1/u) + S(u)/u.
**
** For a pure rate r = (1 + u) rate the derivative in u vanishes iff rate u^2 = S(u), and the left
** side increases while the right side decreases, so there is one root. The functions below find the
** optimal order as a root and then evaluate the formula above at this order. The formula is a valid
** guarantee at EVERY order, so an error of the root makes the result slightly less tight and never
** wrong.
*/
#include "math/renyi.h"

#include <float.h>
#include <math.h>

#include "math/root.h"

/* Orders 1 + 2^(k/4), k from FIRST_QUARTER on; the last one is infinity. */
#define FIRST_QUARTER (-32)

double renyi_order(int index) {
  if (index < 0 || index >= RENYI_ORDERS) return NAN;
  if (index == RENYI_ORDERS - 1) return INFINITY;
  /*
  ** A ledger may move between machines. Square roots give the same result on every machine; exp2()
  ** does not.
  */
  const double quarter[4] = {1.0, sqrt(M_SQRT2), M_SQRT2, sqrt(2.0 * M_SQRT2)};
  return 1.0 + ldexp(quarter[index % 4], index / 4 + FIRST_QUARTER / 4);
}

/* S(u) = -ln((1 + u) delta); the difference ln(1/delta) - ln(1 + u) would cancel. */
static double slack(double u, double delta) {
  if (delta > 0.5) return -log1p(delta * u - (1.0 - delta));
  return -log((1.0 + u) * delta);
}

static int is_probability(double delta) {
  return delta > 0.0 && delta < 1.0;
}

double renyi_allowed(double alpha, double epsilon, double delta) {
  if (!(alpha > 1.0) || !(epsilon >= 0.0) || !is_probability(delta)) return NAN;
  if (alpha == INFINITY) return epsilon;
  double u = alpha - 1.0;
  return epsilon + log1p(1.0 / u) - slack(u, delta) / u;
}

/* Parameters of the two equations in u; each uses rate or epsilon. */
struct equation {
  double rate, epsilon, delta;
};

/* rate u^2 - S(u): the order of zcdp_epsilon(). */
static double epsilon_residual(double u, void *pointer) {
  const struct equation *equation = pointer;
  return equation->rate * u * u - slack(u, equation->delta);
}

double zcdp_epsilon(double rate, double delta) {
  if (!(rate >= 0.0 && rate < INFINITY) || !is_probability(delta)) return NAN;
  if (rate == 0.0) return 0.0;
  struct equation equation = {rate, 0.0, delta};
  /* S < ln(1/delta) and S > 0 both bound the root from above. */
  double high = fmin(sqrt(-log(delta)) / sqrt(rate), fmin((1.0 - delta) / delta, DBL_MAX));
  double u = root_between(epsilon_residual, &equation, 0.0, high * (1.0 + 4.0 * DBL_EPSILON));
  double epsilon = (1.0 + u) * rate - log1p(1.0 / u) + slack(u, delta) / u;
  return epsilon < 0.0 ? 0.0 : epsilon; /* NaN stays NaN */
}

/*
** The order of zcdp_rate() maximises renyi_allowed(1 + u)/(1 + u). There both rate = (epsilon +
** ln(1 + 1/u))/(2u + 1) and rate = S(u)/u^2; this is u^2 times their difference. The first term
** increases, because ln(1 + 1/u) > 2/(2u + 1), and S decreases, so there is one root.
*/
static double rate_residual(double u, void *pointer) {
  const struct equation *equation = pointer;
  return u / (2.0 + 1.0 / u) * (equation->epsilon + log1p(1.0 / u)) - slack(u, equation->delta);
}

/* The root of rate_residual(). */
static double rate_order(struct equation *equation) {
  double epsilon = equation->epsilon, delta = equation->delta;
  double l = -log(delta);
  /* The positive root of u^2 epsilon = (2u + 1) l is too large, and so is the u at which S is 0. */
  double high =
      fmin((l + sqrt(l) * sqrt(l + epsilon)) / epsilon, fmin((1.0 - delta) / delta, DBL_MAX / 2.0));
  high *= 1.0 + 4.0 * DBL_EPSILON;
  if (rate_residual(high, equation) <= 0.0) return high; /* the root is not a double */
  double low = high / 16.0;
  while (rate_residual(low, equation) > 0.0) { /* ends: the limit at 0 is -l */
    low /= 16.0;
  }
  return root_between(rate_residual, equation, low, high);
}

/*
** The filter is enforced at the stored order, so the rate is computed for the stored double. The
** sum 1 + u rounds a small u, but never to 1.
*/
double zcdp_rate(double epsilon, double delta, double *order) {
  struct equation equation = {0.0, epsilon, delta};
  int valid = epsilon > 0.0 && epsilon < INFINITY && is_probability(delta);
  double alpha = valid ? fmax(1.0 + rate_order(&equation), 1.0 + DBL_EPSILON) : NAN;
  if (order) *order = alpha;
  return renyi_allowed(alpha, epsilon, delta) / alpha;
}

/* ---- curves ---------------------------------------------------------------------------------- */

#define LAST_FINITE (RENYI_ORDERS - 2)

/* The stored order at or below alpha = 1 + u, for u within the finite stored orders. */
static int interval_of(double u) {
  int low = 0, high = LAST_FINITE;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (renyi_order(middle) - 1.0 <= u) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The chord of u r between stored orders `index` and `index` + 1, divided by u. */
static double chord(const double *curve, int index, double u) {
  double low = renyi_order(index) - 1.0, high = renyi_order(index + 1) - 1.0;
  double share = (u - low) / (high - low);
  return ((1.0 - share) * low * curve[index] + share * high * curve[index + 1]) / u;
}

double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha) {
  double u = alpha - 1.0;
  if (alpha == INFINITY || u > renyi_order(LAST_FINITE) - 1.0) return curve[RENYI_ORDERS - 1];
  if (isnan(u)) return INFINITY;
  if (u < renyi_order(0) - 1.0) return curve[0]; /* divergences increase with the order */
  for (int i = 0; i <= LAST_FINITE; i++) {
    if (renyi_order(i) == alpha) return curve[i]; /* no chord to an infinite neighbour */
  }
  return chord(curve, interval_of(u), u);
}

/* The epsilon that one order of a rate and a curve converts to. */
static double order_epsilon(double rate, const double *curve, double delta, double u) {
  return (1.0 + u) * rate + renyi_curve_at(curve, 1.0 + u) - log1p(1.0 / u) + slack(u, delta) / u;
}

/* The least of order_epsilon() between two stored orders, by golden sections of ln u. */
static double least_between(double rate, const double *curve, double delta, int index) {
  double low = log(renyi_order(index) - 1.0), high = log(renyi_order(index + 1) - 1.0);
  const double golden = (sqrt(5.0) - 1.0) / 2.0;
  double least = INFINITY;
  for (int i = 0; i < 60; i++) { /* the bracket shrinks by golden^60 = 3e-13 */
    double a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = order_epsilon(rate, curve, delta, exp(a));
    double at_b = order_epsilon(rate, curve, delta, exp(b));
    least = fmin(least, fmin(at_a, at_b));
    if (at_a < at_b) {
      high = b;
    } else {
      low = a;
    }
  }
  return least;
}

double renyi_epsilon(double rate, const double curve[RENYI_ORDERS], double delta) {
  if (!(rate >= 0.0 && rate < INFINITY) || !is_probability(delta)) return NAN;
  int best = 0, empty = 1;
  double least = rate == 0.0 ? curve[RENYI_ORDERS - 1] : INFINITY; /* pure privacy needs no delta */
  for (int i = 0; i <= LAST_FINITE; i++) {
    double epsilon = order_epsilon(rate, curve, delta, renyi_order(i) - 1.0);
    if (!(curve[i] >= 0.0)) return NAN;
    if (curve[i] > 0.0) empty = 0;
    if (i == 0 || epsilon < order_epsilon(rate, curve, delta, renyi_order(best) - 1.0)) best = i;
    least = fmin(least, epsilon);
  }
  if (empty) return zcdp_epsilon(rate, delta);
  if (best > 0) least = fmin(least, least_between(rate, curve, delta, best - 1));
  if (best < LAST_FINITE) least = fmin(least, least_between(rate, curve, delta, best));
  return fmax(least, 0.0);
}
