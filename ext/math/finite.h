/*
** finite.h: results about finite Markov kernels (mixing.h) that do not follow from the coefficients
** of one kernel: the divergence between two kernels (Asoodeh et al. 2020, Lemma 3), a kernel after
** a coupling (Balle et al. 2019, Theorem 2), the least epsilon after a kernel, and powers of a
** kernel.
**
** The rows of every kernel sum to 1. The functions do not check their arguments.
*/
#ifndef DIFFUSE_MATH_FINITE_H
#define DIFFUSE_MATH_FINITE_H

#include "math/mixing.h"

/*
** Returns the largest hockey-stick divergence of order e^epsilon between first(x) and second(x),
** over all states x. If both kernels get the same input, this divergence bounds how well an output
** shows which of the two kernels ran. Both kernels have the same number of rows and the same number
** of columns. 0 <= epsilon <= infinity.
*/
double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon);

/*
** Returns the largest hockey-stick divergence of order e^epsilon_out between the outputs of two
** kernels whose inputs differ too. An (epsilon, delta)-DP mechanism makes the two inputs from
** neighbouring data sets. The first input goes through the first kernel, and the second input goes
** through the second kernel. Every such pair of inputs has the form delta A + (1-delta)(a B + b C)
** and delta D + (1-delta)(b B + a C), where A, B, C and D are distributions, a/b = e^epsilon and a
** + b = 1 (Kairouz, Oh and Viswanath 2015). The divergence is convex in A, B, C and D, so in the
** worst case each of these four distributions is a single state. The running time is proportional
** to rows^4 columns, or to rows^2 columns if delta = 0. Returns NaN if memory runs out.
*/
double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out);

/*
** Returns the least epsilon_out for which kernel_worst_delta(kernel, epsilon, delta, epsilon_out)
** is at most delta_out. The result is rounded up by about one unit in the last place. Returns
** infinity if no finite epsilon_out is enough, and NaN if memory runs out.
*/
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out);

/*
** Returns the bound of Theorem 2 on coupled_rdp(): R(omega || nu) plus the largest R(pi_x K ||
** K(x)) over the states x with omega(x) > 0. K is the kernel and R is the Renyi divergence of order
** alpha. pi is the coupling: its row sums are omega, its column sums are mu, and its row x divided
** by omega(x) is pi_x. The kernel has rows x columns entries, the coupling has rows x rows entries,
** and nu has `rows` entries. Returns NaN if memory runs out.
*/
double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha);

/*
** Returns R(mu K || nu K), where mu is the vector of column sums of the coupling. Returns NaN if
** memory runs out.
*/
double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha);

/*
** Stores in `power` (rows x rows entries) the kernel of `steps` >= 1 applications of `kernel`,
** which has as many columns as rows. After each matrix product the function scales the rows to sum
** to 1. Returns 1, or 0 if memory runs out.
*/
int kernel_power(const struct kernel *kernel, double steps, double *power);

#endif
