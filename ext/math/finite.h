/*
** finite.h: results of the two papers about more than one table of probabilities: two kernels
** (Asoodeh et al. 2020, Lemma 3), a kernel behind a coupling (Balle et al. 2019, Theorem 2), the
** least epsilon behind a kernel, and powers of a kernel.
**
** Kernels have rows that sum to 1 (mixing.h). Arguments are not checked.
*/
#ifndef DIFFUSE_MATH_FINITE_H
#define DIFFUSE_MATH_FINITE_H

#include "math/mixing.h"

/*
** The largest hockey-stick divergence of order e^epsilon of first(x) from second(x) over states x,
** the same for both: what two kernels can tell of which of them ran, on any input. Both have the
** same rows and columns. 0 <= epsilon <= infinity.
*/
double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon);

/*
** The same for inputs that differ too: the least delta such that every (epsilon, delta)-DP pair of
** inputs, the first sent through one kernel and the second through the other, has a hockey-stick
** divergence of order e^epsilon_out of at most it. Every such pair is delta A + (1-delta)(a B + b
** C) and delta D + (1-delta)(b B + a C), a/b = e^epsilon, a + b = 1 (Kairouz, Oh and Viswanath
** 2015), and the divergence is convex in A, B, C and D, so that the worst of them are four states.
** It takes rows^4 columns steps, rows^2 columns at delta = 0. NaN without memory.
*/
double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out);

/*
** The least epsilon_out with kernel_worst_delta(kernel, epsilon, delta, epsilon_out) <= delta_out,
** rounded up to the next double or so; infinity where there is none.
*/
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out);

/*
** Theorem 2: R(omega || nu) + the largest, over the states x of omega, R(pi_x K || K(x)), where
** pi, a coupling of omega (its row sums) and mu (its column sums), sends x to pi_x. kernel:
** rows x columns; coupling: rows x rows; nu: rows. Bounds coupled_rdp(). NaN without memory.
*/
double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha);

/* R(mu K || nu K), mu the column sums of the coupling. NaN without memory. */
double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha);

/*
** The kernel applied `steps` >= 1 times: `power` (rows x rows) receives it. kernel has as many
** columns as rows. Rows are made to sum to 1 again after each product. Returns 0, or -1 without
** memory.
*/
int kernel_power(const struct kernel *kernel, double steps, double *power);

#endif
