/* cost.h: what a publication costs, how costs are rounded and added up, so that a cost is never
** below its true value, and what Renyi differential privacy makes of it. */
#ifndef DIFFUSE_MATH_COST_H
#define DIFFUSE_MATH_COST_H

#include <stdint.h>

/* A publication with this cost is (alpha, alpha rate + curve(alpha))-RDP for every order alpha,
** except with failure probability delta. Gaussian noise costs a rate only, pure mechanisms such as
** Laplace noise cost a curve, and approximate ones such as private key selection a delta. */
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0; each publication pays it in full, out of the tier's delta_keys */
  /* the RDP that is added to the RDP of the rate; null: no curve */
  double (*curve)(const void *parameters, double alpha);
  const void *parameters; /* the first argument of curve() */
};

/* ---- rounding -------------------------------------------------------------------------------- */

/* The functions of math/ have relative errors of about 1e-14. This margin of 4.5e-13 is much
** larger, and smaller than 1e-12, the accuracy that the documentation promises. */
#define PUBLISHED_MARGIN 0x1p-41

/* Round x >= 0: up for a cost, a deviation or a failure probability, down for an amount to
** spend. */
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

/* Returns the zCDP rate of discrete Gaussian noise of variance V >= 1 on a sum of integers (a
** lattice release) with integer sensitivity s < 2^32, rounded up: s^2/(2(V - 1/12)). This bounds
** two rates: the exact s^2/(2V) of the discrete Gaussian (Canonne, Kamath and Steinke 2020, Theorem
** 4), and that of the continuous Gaussian by which the exact Gaussian accountant replaces it. */
static inline double lattice_rate(uint64_t sensitivity, uint64_t variance) {
  double s = (double)sensitivity;
  return 6 * s * s / (12.0 * (double)variance - 1) * (1 + 0x1p-49);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* A running total, high + low (double-double, Dekker 1971). An addition is exact except for the
** last rounding of `low`, which goes up: 0.5 grows by 1e-11 with a million terms of 1e-17. */
struct total {
  double high, low;
};

/* total + term, rounded up; the term is finite. The least double that is not below the total.
** Whether the total is at most `limit`: 0 if one of them is NaN. And a lower bound on limit -
** total, or 0 if this difference is negative. */
struct total total_add(struct total total, double term);
double total_up(struct total total);
int total_within(struct total total, double limit);
double total_left(struct total total, double limit);

/* The largest double x >= 0 such that paid - x >= cost, or 0 if there is none; and the least x >= 0
** such that paid + x is at least `cost`. */
double total_spare(struct total paid, double cost);
double total_missing(struct total paid, double cost);

/* ---- Renyi differential privacy -------------------------------------------------------------- */

/* The grid of orders of Renyi differential privacy (RDP), the conversion to (epsilon, delta), and
** the limits that privacy filters enforce.
**
** The curve of a mechanism is a function r such that the mechanism is (alpha, r(alpha))-RDP for
** every order alpha. A zCDP rate L is the curve r(alpha) = alpha L. A curve converts to (epsilon,
** delta) as follows (Balle et al. 2020, Theorem 21; Canonne, Kamath and Steinke 2020, Proposition
** 12):
**     epsilon = r(alpha) + ln(1 - 1/alpha) - (ln delta + ln alpha)/(alpha - 1),
** minimised over alpha > 1, and 0 if the minimum is negative. A budget is valid for adaptively
** chosen releases if it is enforced at one order that was fixed in advance (Feldman and Zrnic 2021,
** Renyi filters).
**
** These functions return NaN for arguments outside their domain. The relative error is at most
** 1e-12 (measurements showed 1e-14). If a result is a difference close to 0, the error is relative
** to the largest term of this difference. They round to nearest; the functions above round in the
** direction of privacy. */

/* The stored orders: 1 + 2^(k/4) for k = -32 .. 80, then infinity. renyi_order() returns one. */
#define RENYI_ORDERS 114
double renyi_order(int index);

/* Returns the largest r(alpha) that converts to (epsilon, delta) at the single order alpha > 1:
** what a tier may spend at this order. At order infinity it is epsilon, and negative if even 0 does
** not convert. epsilon >= 0, 0 < delta < 1, here and below. */
double renyi_allowed(double alpha, double epsilon, double delta);

/* Returns the least epsilon to which the zCDP rate `rate` >= 0 converts, over all real orders. */
double zcdp_epsilon(double rate, double delta);

/* Returns the largest rate whose zcdp_epsilon() is at most epsilon > 0. Sets *order, unless it is
** null, to the order that attains it, at which a tier's privacy filter enforces its budget. */
double zcdp_rate(double epsilon, double delta, double *order);

/* A curve is stored as an array with the values of r at the stored orders; the one at order
** infinity is infinite if the mechanism is not pure. Between two stored orders, the chord of (alpha
** - 1) r(alpha) is an upper bound, because this function is convex. Below the least stored order, r
** is at most its value there, because r does not decrease with alpha. renyi_curve_at() returns this
** bound for any order in (1, infinity]. */

double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha);

/* Returns the least epsilon to which the sum of `rate` >= 0 and a curve >= 0 converts, at the
** stored orders and the orders between them. If the curve is 0, the result is zcdp_epsilon(). */
double renyi_epsilon(double rate, const double curve[RENYI_ORDERS], double delta);

#endif
