/*
** cost.h: what a publication costs, how costs are rounded, and how they are added up, so
** that a cost is never below its true value.
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

#endif
