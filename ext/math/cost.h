/*
** cost.h: what a publication costs, how costs are rounded and added up, so that a cost is never
** below its true value, and what Renyi differential privacy makes of it.
*/
#ifndef DIFFUSE_MATH_COST_H
#define DIFFUSE_MATH_COST_H

#include <stdint.h>

/*
** A publication with this cost is (alpha, alpha rate + curve(alpha))-RDP for every order alpha,
** except with failure probability delta. Gaussian noise costs a rate only. Laplace noise,
** randomized response and other pure mechanisms cost a curve. Private key selection and other
** approximate mechanisms cost a delta.
*/
struct cost {
  double rate;  /* zCDP rate of the Gaussian part, >= 0 */
  double delta; /* >= 0; each publication pays it in full, out of the tier's delta_keys */
  /* the RDP that is added to the RDP of the rate; null: no curve */
  double (*curve)(const void *parameters, double alpha);
  const void *parameters; /* the first argument of curve() */
};

/* ---- rounding -------------------------------------------------------------------------------- */

/*
** The functions of math/ have relative errors of about 1e-14. This margin, 4.5e-13, is much larger
** than these errors, and smaller than 1e-12, the accuracy that the documentation promises.
*/
#define PUBLISHED_MARGIN 0x1p-41

/* Rounds up x >= 0, which is a cost, a deviation or a failure probability. */
static inline double published_up(double x) {
  return x * (1.0 + PUBLISHED_MARGIN);
}

/*
** Returns the zCDP rate of discrete Gaussian noise on a sum of integers (a lattice release),
** rounded up. For integer sensitivity s and variance V the rate is s^2/(2(V - 1/12)). This rate is
** an upper bound on two rates: the exact zCDP rate s^2/(2V) of the discrete Gaussian (Canonne,
** Kamath and Steinke 2020, Theorem 4), and the rate of the continuous Gaussian by which the exact
** Gaussian accountant replaces the discrete one. s < 2^32, V >= 1.
*/
static inline double lattice_rate(uint64_t sensitivity, uint64_t variance) {
  double s = (double)sensitivity;
  return 6 * s * s / (12.0 * (double)variance - 1) * (1 + 0x1p-49);
}

/* Rounds down x >= 0, an amount that may be spent. */
static inline double published_down(double x) {
  return x * (1.0 - PUBLISHED_MARGIN);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/*
** A running total, high + low (double-double, Dekker 1971). Each addition is
** exact except for the last rounding of `low`, which goes up, so even a tiny term raises the total:
** a total of 0.5 grows by 1e-11 when a million terms of 1e-17 are added.
*/
struct total {
  double high, low;
};

/* Returns total + term, rounded up. The term is finite. */
struct total total_add(struct total total, double term);

/* Returns the least double that is not below the total. */
double total_up(struct total total);

/* Returns whether the total is at most `limit`. Returns 0 if the total or `limit` is NaN. */
int total_within(struct total total, double limit);

/* Returns a lower bound on limit - total, or 0 if this difference is negative. */
double total_left(struct total total, double limit);

/* Returns the largest double x >= 0 such that paid - x >= cost, or 0 if there is none. */
double total_spare(struct total paid, double cost);

/* Returns the least double x >= 0 such that paid + x is at least `cost`. */
double total_missing(struct total paid, double cost);

/* ---- Renyi differential privacy -------------------------------------------------------------- */

/*
** The grid of orders of Renyi differential privacy (RDP), the conversion to (epsilon, delta), and
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
** direction of privacy.
*/

/* The stored orders: 1 + 2^(k/4) for k = -32 .. 80, then infinity. */
#define RENYI_ORDERS 114

/* Returns the stored order number `index`, 0 <= index < RENYI_ORDERS. */
double renyi_order(int index);

/*
** Returns the largest value r(alpha) that converts to (epsilon, delta) at the single order alpha >
** 1. A tier may spend this amount at order alpha. At order infinity the result is epsilon. The
** result is negative if even r(alpha) = 0 does not convert to (epsilon, delta) at this order.
** epsilon >= 0, 0 < delta < 1.
*/
double renyi_allowed(double alpha, double epsilon, double delta);

/*
** Returns the least epsilon to which the zCDP rate `rate` converts, over all real orders. rate >=
** 0, 0 < delta < 1.
*/
double zcdp_epsilon(double rate, double delta);

/*
** Returns the largest rate whose zcdp_epsilon() is at most epsilon. Sets *order to the order that
** attains this epsilon, unless `order` is null. A tier's privacy filter enforces its budget at this
** order. epsilon > 0, 0 < delta < 1.
*/
double zcdp_rate(double epsilon, double delta, double *order);

/*
** A curve is stored as an array with the values of r at the stored orders. curve[RENYI_ORDERS - 1]
** is r at order infinity, and infinite if the mechanism is not pure. Between two stored orders, the
** chord of (alpha - 1) r(alpha) is an upper bound, because this function is convex. Below the least
** stored order, r is at most its value at the least stored order, because r does not decrease with
** alpha.
*/

/* Returns an upper bound on r(alpha) for any order alpha in (1, infinity]. */
double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha);

/*
** Returns the least epsilon to which the sum of `rate` and a curve converts. The function tries the
** stored orders and the orders between them. rate >= 0, 0 < delta < 1, and every entry of the curve
** is >= 0. If all entries are 0, the result is zcdp_epsilon().
*/
double renyi_epsilon(double rate, const double curve[RENYI_ORDERS], double delta);

#endif
