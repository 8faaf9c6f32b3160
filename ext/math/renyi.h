/*
** renyi.h: Renyi differential privacy: the grid of orders, conversion to (epsilon, delta), filters.
**
** A mechanism is (alpha, r(alpha))-RDP; a zCDP rate L means r(alpha) = alpha L for every order.
** Conversion (Balle et al. 2020, Theorem 21; Canonne, Kamath and Steinke 2020, Proposition 12):
**     epsilon = r(alpha) + ln(1 - 1/alpha) - (ln delta + ln alpha)/(alpha - 1),
** minimised over alpha > 1 and clamped at 0. A budget enforced at one order fixed in advance is
** valid for adaptively chosen releases (Feldman and Zrnic 2021, Renyi filters).
**
** Functions return NaN outside their domain. Relative error is at most 1e-12 (1e-14 was measured).
** If an epsilon or an allowance is a difference close to 0, the error is relative to its largest
** term. The functions round to nearest; rounding.h rounds in the direction of privacy.
*/
#ifndef DIFFUSE_MATH_RENYI_H
#define DIFFUSE_MATH_RENYI_H

/* The stored orders: 1 + 2^(k/4) for k = -32 .. 80, then infinity. */
#define RENYI_ORDERS 114

/* Order number `index`, 0 <= index < RENYI_ORDERS. */
double renyi_order(int index);

/*
** The most that may be spent at order alpha: the largest r(alpha) that this order alone converts to
** (epsilon, delta). Negative if the order cannot certify epsilon at all. alpha > 1 (infinity gives
** epsilon), epsilon >= 0, 0 < delta < 1.
*/
double renyi_allowed(double alpha, double epsilon, double delta);

/* Least epsilon of a rate without a curve, over all real orders. rate >= 0, 0 < delta < 1. */
double zcdp_epsilon(double rate, double delta);

/*
** Largest rate whose zcdp_epsilon() is at most epsilon, with the order at which it is attained: the
** filter of a tier. epsilon > 0, 0 < delta < 1; `order` may be null.
*/
double zcdp_rate(double epsilon, double delta, double *order);

/*
** A curve on top of a rate holds r at each stored order; curve[RENYI_ORDERS - 1] is r at infinity
** (infinite if the mechanism is not pure). Between stored orders the convex function (alpha - 1)
** r(alpha) is bounded by its chord. Below the least stored order r is at most its value there,
** because r does not decrease with alpha.
*/

/* An upper bound on a curve at any order in (1, infinity]. */
double renyi_curve_at(const double curve[RENYI_ORDERS], double alpha);

/*
** Least epsilon that `rate` and a curve together convert to, over all real orders at and between
** the stored ones. rate >= 0, 0 < delta < 1; curve entries >= 0. For a curve of zeros this is
** zcdp_epsilon().
*/
double renyi_epsilon(double rate, const double curve[RENYI_ORDERS], double delta);

#endif
