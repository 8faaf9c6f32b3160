/* cost.c: see math.h. Totals need IEEE doubles that are rounded to nearest, and -ffp-contract=off,
** so that the compiler does not replace a product and a sum by an FMA.
** Tests: tests/math/test_total.c, tests/math/test_renyi.c,
** tests/functions/test_planning.py */
#include "math/math.h"

#include <float.h>
#include <math.h>

#include "math/numeric.h"

/* ---- totals ---------------------------------------------------------------------------------- */

/* Knuth's two-sum: returns a + b rounded, and sets *error to the exact rounding error. */
static double two_sum(double a, double b, double *error) {
  double sum = a + b;
  double b_part = sum - a;
  *error = (a - (sum - b_part)) + (b - b_part);
  return sum;
}

struct total total_add(struct total total, double term) {
  double error, rest;
  double high = two_sum(total.high, term, &error);
  double low = two_sum(total.low, error, &rest);
  if (rest > 0) low = nextafter(low, INFINITY);
  struct total sum;
  sum.high = two_sum(high, low, &sum.low);
  return sum;
}

double total_up(struct total total) {
  double error;
  double sum = two_sum(total.high, total.low, &error);
  return error > 0 ? nextafter(sum, INFINITY) : sum;
}

int total_within(struct total total, double limit) {
  double high = total.high, low = total.low;
  return high < limit ? low <= limit - high : (high == limit && low <= 0);
}

double total_left(struct total total, double limit) {
  double left = (limit - total.high) - total.low;
  return left > 0 ? nextafter(left, 0) : 0;
}

double total_spare(struct total paid, double cost) {
  double error_of_high, error_of_low, error_of_rest, error;
  if (!isfinite(paid.high) || !isfinite(cost)) return 0;
  double spare = two_sum(paid.high, -cost, &error_of_high);
  spare = two_sum(spare, paid.low, &error_of_low);
  double rest = two_sum(error_of_high, error_of_low, &error_of_rest);
  if (error_of_rest < 0) rest = nextafter(rest, -INFINITY);
  spare = two_sum(spare, rest, &error); /* paid - cost is at least spare + error */
  if (error < 0) spare = nextafter(spare, 0);
  return spare > 0 ? spare : 0;
}

double total_missing(struct total paid, double cost) {
  if (isinf(cost)) return isinf(paid.high) ? 0 : cost; /* the differences below would be NaN */
  double error_of_high, error_of_low, error_of_rest, error;
  double missing = two_sum(cost, -paid.high, &error_of_high);
  missing = two_sum(missing, -paid.low, &error_of_low);
  double rest = two_sum(error_of_high, error_of_low, &error_of_rest);
  if (error_of_rest > 0) rest = nextafter(rest, INFINITY);
  missing = two_sum(missing, rest, &error); /* cost - paid is at most missing + error */
  if (error > 0) missing = nextafter(missing, INFINITY);
  return missing > 0 ? missing : 0;
}

/* ---- Renyi differential privacy -------------------------------------------------------------- */

/* With u = alpha - 1 and S(u) = -ln(alpha delta), the conversion is
**     epsilon = r(alpha) - ln(1 + 1/u) + S(u)/u.
**
** For a rate without a curve, r = (1 + u) rate. The derivative of epsilon with respect to u is then
** zero if and only if rate u^2 = S(u). The left side increases and the right side decreases, so
** there is one root. The functions below find the optimal order as this root and then evaluate the
** formula above at this order. The formula is a valid guarantee at every order, not only at the
** optimal one. A small error of the root therefore makes the result slightly less tight, but never
** wrong. */

#define FIRST_QUARTER (-32) /* the least k of the stored orders */

double renyi_order(int index) {
  if (index < 0 || index >= RENYI_ORDERS) return NAN;
  if (index == RENYI_ORDERS - 1) return INFINITY;
  /* A ledger may move between machines, so every machine must compute the same orders. Square roots
  ** are the same on every machine, but the results of exp2() can differ. */
  const double quarter[4] = {1.0, sqrt(M_SQRT2), M_SQRT2, sqrt(2.0 * M_SQRT2)};
  return 1.0 + ldexp(quarter[index % 4], index / 4 + FIRST_QUARTER / 4);
}

/* Returns S(u) = -ln((1 + u) delta). The formula ln(1/delta) - ln(1 + u) would lose digits. */
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

/* The parameters of epsilon_residual() (rate, delta) and of rate_residual() (epsilon, delta). */
struct equation {
  double rate, epsilon, delta;
};

/* Returns rate u^2 - S(u). The optimal order of zcdp_epsilon() is 1 plus the root. */
static double epsilon_residual(double u, void *pointer) {
  const struct equation *equation = pointer;
  return equation->rate * u * u - slack(u, equation->delta);
}

double zcdp_epsilon(double rate, double delta) {
  if (!(rate >= 0.0 && rate < INFINITY) || !is_probability(delta)) return NAN;
  if (rate == 0.0) return 0.0;
  struct equation equation = {rate, 0.0, delta};
  /* The root is below two numbers, which follow from S(u) < ln(1/delta) and from S(u) > 0. */
  double high = fmin(sqrt(-log(delta)) / sqrt(rate), fmin((1.0 - delta) / delta, DBL_MAX));
  double u = root_between(epsilon_residual, &equation, 0.0, high * (1.0 + 4.0 * DBL_EPSILON));
  double epsilon = (1.0 + u) * rate - log1p(1.0 / u) + slack(u, delta) / u;
  return epsilon < 0.0 ? 0.0 : epsilon; /* a NaN is returned as NaN */
}

/* zcdp_rate() maximises renyi_allowed(1 + u)/(1 + u) over u. At the maximum, rate = (epsilon + ln(1
** + 1/u))/(2u + 1) and rate = S(u)/u^2. This function returns u^2 times the difference of these two
** expressions for the rate. The result has one root, because u^2 times the first expression
** increases with u (since ln(1 + 1/u) > 2/(2u + 1)) and S(u) decreases. */
static double rate_residual(double u, void *pointer) {
  const struct equation *equation = pointer;
  return u / (2.0 + 1.0 / u) * (equation->epsilon + log1p(1.0 / u)) - slack(u, equation->delta);
}

static double rate_order(struct equation *equation) {
  double epsilon = equation->epsilon, delta = equation->delta;
  double l = -log(delta);
  /* The root is below two numbers: the positive solution u of u^2 epsilon = (2u + 1) l with l =
  ** ln(1/delta), and the u at which S(u) = 0. */
  double high =
      fmin((l + sqrt(l) * sqrt(l + epsilon)) / epsilon, fmin((1.0 - delta) / delta, DBL_MAX / 2.0));
  high *= 1.0 + 4.0 * DBL_EPSILON;
  /* If so, rounding errors have moved the computed root above `high`. */
  if (rate_residual(high, equation) <= 0.0) return high;
  double low = high / 16.0;
  /* The loop ends, because rate_residual() tends to -l < 0 as u tends to 0. */
  while (rate_residual(low, equation) > 0.0) {
    low /= 16.0;
  }
  return root_between(rate_residual, equation, low, high);
}

/* The ledger stores the order as a double and enforces the budget at this order, so the function
** computes the rate for the rounded order. fmax() keeps the order above 1 if u is very small. */
double zcdp_rate(double epsilon, double delta, double *order) {
  struct equation equation = {0.0, epsilon, delta};
  int valid = epsilon > 0.0 && epsilon < INFINITY && is_probability(delta);
  double alpha = valid ? fmax(1.0 + rate_order(&equation), 1.0 + DBL_EPSILON) : NAN;
  if (order) *order = alpha;
  return renyi_allowed(alpha, epsilon, delta) / alpha;
}

/* ---- curves ---------------------------------------------------------------------------------- */

#define LAST_FINITE (RENYI_ORDERS - 2)

double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha) {
  double u = alpha - 1.0;
  if (alpha == INFINITY || u > renyi_order(LAST_FINITE) - 1.0) return curve[RENYI_ORDERS - 1];
  if (isnan(u)) return INFINITY;
  if (u < renyi_order(0) - 1.0) return curve[0]; /* r does not decrease with the order */
  int next = 0;
  while (renyi_order(next) < alpha) next++;
  /* At a stored order the chord is not needed: the value at the next order could be infinite. */
  if (renyi_order(next) == alpha) return curve[next];
  double low = renyi_order(next - 1) - 1.0, high = renyi_order(next) - 1.0;
  double share = (u - low) / (high - low); /* of the chord of u r(1 + u) */
  return ((1.0 - share) * low * curve[next - 1] + share * high * curve[next]) / u;
}

/* Returns the epsilon to which the sum of a rate and a curve converts at order 1 + u. */
static double order_epsilon(double rate, const double *curve, double delta, double u) {
  return (1.0 + u) * rate + renyi_curve_at(curve, 1.0 + u) - log1p(1.0 / u) + slack(u, delta) / u;
}

/* Returns the least order_epsilon() between the stored orders `index` and `index` + 1. The function
** searches by golden sections of ln u. */
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
  /* If the rate is 0, the value at order infinity is an epsilon that holds even at delta = 0. */
  double least = rate == 0.0 ? curve[RENYI_ORDERS - 1] : INFINITY;
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
