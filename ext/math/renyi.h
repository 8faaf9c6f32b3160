/*
** renyi.h: Renyi differential privacy (RDP). This file declares the grid of orders, the conversion
** to (epsilon, delta) and the limits that privacy filters enforce.
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
** The functions return NaN for arguments outside their domain. The relative error is at most 1e-12
** (measurements showed 1e-14). If a result is a difference close to 0, the error is relative to the
** largest term of this difference. The functions round to nearest. The functions of cost.h
** round in the direction of privacy.
*/
#ifndef DIFFUSE_MATH_RENYI_H
#define DIFFUSE_MATH_RENYI_H

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
