/*
** total.h: running totals of non-negative terms that never lose one and never fall below the truth.
**
** A total is an unevaluated sum high + low of two doubles (double-double, Dekker 1971); each
** addition is exact but for a last rounding of `low`, which goes up. A million terms of 1e-17 on
** top of 0.5 are all there.
*/
#ifndef DIFFUSE_MATH_TOTAL_H
#define DIFFUSE_MATH_TOTAL_H

struct total {
  double high, low;
};

/* total + term, rounded up. term >= 0, finite. */
struct total total_add(struct total total, double term);

/* The least double that is not below the total. */
double total_up(struct total total);

/* Whether the total is at most `limit`. A NaN anywhere makes it false. */
int total_within(struct total total, double limit);

/* A lower bound on limit - total, 0 where that is negative. */
double total_left(struct total total, double limit);

/* The least double x such that paid + x is at least `cost`; 0 where it is already. */
double total_missing(struct total paid, double cost);

#endif
