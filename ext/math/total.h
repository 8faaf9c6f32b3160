/*
** total.h: running totals of non-negative terms. A total is never below the exact sum of its terms.
** Even a tiny term raises the total.
**
** A total is stored as two doubles whose sum high + low is its value (double-double, Dekker 1971).
** Each addition is exact except for the last rounding of `low`, which goes up. For example, a total
** of 0.5 grows by 1e-11 when a million terms of 1e-17 are added.
*/
#ifndef DIFFUSE_MATH_TOTAL_H
#define DIFFUSE_MATH_TOTAL_H

struct total {
  double high, low;
};

/* Returns total + term, rounded up. The term is finite and >= 0. */
struct total total_add(struct total total, double term);

/* Returns the least double that is not below the total. */
double total_up(struct total total);

/* Returns whether the total is at most `limit`. Returns 0 if the total or `limit` is NaN. */
int total_within(struct total total, double limit);

/* Returns a lower bound on limit - total, or 0 if this difference is negative. */
double total_left(struct total total, double limit);

/* Returns the least double x >= 0 such that paid + x is at least `cost`. */
double total_missing(struct total paid, double cost);

#endif
