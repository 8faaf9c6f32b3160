/*
** finite.h: results of the two papers that go beyond a single kernel: two kernels (Asoodeh et al.
** 2020, Lemma 3), a kernel after a coupling (Balle et al. 2019, Theorem 2), the least epsilon after
** a kernel, and powers of a kernel.
**
** Kernels have rows that sum to 1 (mixing.h). Arguments are not checked.
*/
#ifndef DIFFUSE_MATH_FINITE_H
#define DIFFUSE_MATH_FINITE_H

#include "math/mixing.h"

/*
** The largest hockey-stick divergence of order e^epsilon between first(x) and second(x), over all
** states x. It bounds how well an output shows which of the two kernels ran, if both get the same
** input. Both kernels have the same numbers of rows and columns. 0 <= epsilon <= infinity.
*/
double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon);

/*
** The same for inputs that differ too: the least delta_out such that every (epsilon, delta)-DP pair
** of inputs, the first sent through one kernel and the second through the other, has a hockey-stick
** divergence of order e^epsilon_out of at most delta_out. Every such pair is delta A + (1-delta)(a
** B + b C) and delta D + (1-delta)(b B + a C), a/b = e^epsilon, a + b = 1 (Kairouz, Oh and
** Viswanath 2015), and the divergence is convex in A, B, C and D, so in the worst case each of them
** is a single state. The function takes rows^4 columns steps, or rows^2 columns at delta = 0. NaN
** when out of memory.
*/
double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out);

/*
** The least epsilon_out with kernel_worst_delta(kernel, epsilon, delta, epsilon_out) <= delta_out,
** rounded up by about one unit in the last place. Infinity if there is none.
*/
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out);

/*
** Theorem 2: R(omega || nu) plus the largest R(pi_x K || K(x)) over the states x of omega. pi is a
** coupling of omega (its row sums) and mu (its column sums), and pi_x is the distribution to which
** it sends x. Sizes: kernel rows x columns, coupling rows x rows, nu rows. The result is an upper
** bound on coupled_rdp(). NaN when out of memory.
*/
double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha);

/* R(mu K || nu K), where mu is the column sums of the coupling. NaN when out of memory. */
double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha);

/*
** Writes the kernel applied `steps` >= 1 times to `power` (rows x rows). kernel has as many columns
** as rows. Scales the rows to sum to 1 after each product. Returns 1, or 0 when out of memory.
*/
int kernel_power(const struct kernel *kernel, double steps, double *power);

#endif
