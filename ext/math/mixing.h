/* mixing.h: privacy amplification by uniform mixing (Balle et al. 2019, Theorem 1) and the
** contraction coefficients of finite Markov kernels (Asoodeh et al. 2020, Theorem 2).
**
** The papers define four conditions on a kernel K whose rows sum to 1. Each condition has a
** parameter gamma. This list gives, for each condition, the least gamma for which K meets it:
**     Dobrushin                   max over x, x' of the total variation of K(x) and K(x')
**     (gamma, epsilon)-Dobrushin  max over x, x' of sum_y [K(x,y) - e^epsilon K(x',y)]_+
**     Doeblin                     1 - sum_y min_x K(x,y)
**     ultra-mixing                max over x, x', y of 1 - K(x,y)/K(x',y)
** For every kernel these four values are ordered: (gamma, epsilon)-Dobrushin <= Dobrushin <=
** Doeblin <= ultra-mixing.
**
** A struct kernel's rows sum to 1. No function of this file checks its arguments. */
#ifndef DIFFUSE_MATH_MIXING_H
#define DIFFUSE_MATH_MIXING_H

#include <stddef.h>

/* The output of the kernel is (epsilon, delta)-DP. */
struct amplified {
  double epsilon;
  double delta;
};

/* Theorem 1: the privacy of an (epsilon, delta)-DP mechanism that is followed by a kernel, which
** meets the named condition with this gamma; amplify_dobrushin() is for parts 1 and 2, with gamma
** at mixing_epsilon() for part 2. 0 <= gamma, delta <= 1 and 0 <= epsilon <= infinity. The relative
** error is at most 1e-12 wherever the result is a normal double. */
struct amplified amplify_dobrushin(double gamma, double epsilon, double delta);
struct amplified amplify_doeblin(double gamma, double epsilon, double delta);
struct amplified amplify_ultra(double gamma, double epsilon, double delta);

/* Returns ln(1 + (e^epsilon - 1)/delta), at which part 2 of Theorem 1 needs the (gamma,
** epsilon~)-Dobrushin condition: 0 for epsilon = 0, and infinite for delta = 0 < epsilon, where the
** amplified delta is 0 for every kernel. */
double mixing_epsilon(double epsilon, double delta);

/* A kernel of `rows` x `columns` probabilities, stored row after row. */
struct kernel {
  const double *probability;
  size_t rows;
  size_t columns;
};

double kernel_dobrushin(const struct kernel *kernel);
double kernel_doeblin(const struct kernel *kernel);

/* NaN if the supports of two rows differ: no gamma satisfies the condition. */
double kernel_ultra(const struct kernel *kernel);

/* Returns the maximum over x, x' of sum_y [weight K(x,y) - (weight + e^epsilon - 1) K(x',y)]_+, for
** weight >= 0 and 0 <= epsilon <= infinity: for weight = 1 the least gamma of the (gamma,
** epsilon)-Dobrushin condition, and for weight = delta the delta of Theorem 1(2), also at delta =
** 0, by which it does not divide. */
double kernel_hockey_stick(const struct kernel *kernel, double weight, double epsilon);

/* Returns the least delta' such that every (epsilon, delta)-DP mechanism is (epsilon_out,
** delta')-DP after the kernel. The result is exact for every epsilon_out >= 0: that of Theorem 1(2)
** for (epsilon_out, d), where every input is (epsilon_out, d)-DP with d = delta + (1-delta)
** [e^epsilon - e^epsilon_out]_+/(1+e^epsilon) (README.md). */
double kernel_worst_delta(const struct kernel *kernel, double epsilon, double delta,
                          double epsilon_out);

/* Raises rdp[k] to the Renyi divergence of order orders[k] > 1 of the worst pair of outputs whose
** first row is `row`, if the input of the kernel is the output of an epsilon-DP mechanism. Order
** infinity gives the epsilon of pure differential privacy. The caller sets rdp[k] to 0 and calls
** the function for every row, so that it can stop between two rows of a large kernel. The result is
** exact (README.md): that of randomized response between two states. 0 <= epsilon < 700. The
** relative error is at most 1e-12 for every result above 1e-280. `rest` (or null) holds corrections
** of the probabilities, each smaller than the rounding error of its probability. Returns 0 if
** memory runs out. */
int kernel_rdp(const struct kernel *kernel, const double *rest, double epsilon, size_t row,
               const double *orders, int count, double *rdp);

/* ---- two kernels, couplings, powers ---------------------------------------------------------- */

/* Returns the largest hockey-stick divergence of order e^epsilon, in [0, infinity], between
** first(x) and second(x), over all states x: if both kernels, of equal size, get the same input, it
** bounds how well an output shows which of the two ran. */
double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon);

/* Returns the largest hockey-stick divergence of order e^epsilon_out between the outputs of two
** kernels whose inputs an (epsilon, delta)-DP mechanism makes from neighbouring data sets, one for
** each kernel. Every such pair of inputs has the form delta A + (1-delta)(a B + b C) and delta D +
** (1-delta)(b B + a C), where A, B, C and D are distributions, a/b = e^epsilon and a + b = 1
** (Kairouz, Oh and Viswanath 2015). The divergence is convex in each of them, so in the worst case
** they are single states. The running time is proportional to rows^4 columns, or to rows^2 columns
** if delta = 0. NaN: memory ran out. */
double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out);

/* Returns the least epsilon_out for which kernel_worst_delta() is at most delta_out, rounded up by
** about one unit in the last place: infinity if no finite one is enough, and NaN if memory runs
** out. */
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out);

/* Returns the bound of Theorem 2 on coupled_rdp(): R(omega || nu) plus the largest R(pi_x K ||
** K(x)) over the states x with omega(x) > 0. K is the kernel and R is the Renyi divergence of order
** alpha. pi is the coupling, rows x rows entries: its row sums are omega, its column sums are mu,
** and its row x divided by omega(x) is pi_x. nu has `rows` entries. coupled_rdp() returns R(mu K ||
** nu K). NaN: memory ran out. */
double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha);
double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha);

/* Sets `power` (rows x rows entries) to `steps` >= 1 applications of a square kernel, with rows
** that sum to 1 after each product. Returns 0 if memory runs out. */
int kernel_power(const struct kernel *kernel, double steps, double *power);

#endif
