/*
** total.h: running totals of non-negative terms that lose no term and are never below the exact
** sum.
**
** A total is an unevaluated sum high + low of two doubles (double-double, Dekker 1971); each
** addition is exact except for the last rounding of `low`, which goes up. A total of 0.5 keeps a
** million further terms of 1e-17.
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

/* Returns whether the total is at most `limit`. A NaN anywhere makes it false. */
int total_within(struct total total, double limit);

/* A lower bound on limit - total, or 0 if that is negative. */
double total_left(struct total total, double limit);

/* The least double x such that paid + x is at least `cost`; 0 if paid is that much already. */
double total_missing(struct total paid, double cost);

#endif
