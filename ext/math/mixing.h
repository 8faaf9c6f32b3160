/*
** mixing.h: privacy amplification by uniform mixing (Balle et al. 2019, Theorem 1) and the
** contraction coefficients of finite Markov kernels (Asoodeh et al. 2020, Theorem 2).
**
** The four conditions, each with its least gamma for a kernel K of n rows that sum to 1:
**     Dobrushin            max over x, x' of the total variation of K(x) and K(x')
**     (gamma, epsilon)-D.  max over x, x' of sum_y [K(x,y) - e^epsilon K(x',y)]_+
**     Doeblin              1 - sum_y min_x K(x,y)
**     ultra-mixing         max over x, x', y of 1 - K(x,y)/K(x',y)
** For every kernel (gamma, epsilon)-Dobrushin <= Dobrushin <= Doeblin <= ultra-mixing.
*/
#ifndef DIFFUSE_MATH_MIXING_H
#define DIFFUSE_MATH_MIXING_H

#include <stddef.h>

/* Privacy after the kernel. */
struct amplified {
  double epsilon;
  double delta;
};

/*
** Theorem 1: an (epsilon, delta)-DP mechanism followed by a kernel with the named property for
** `gamma`. 0 <= gamma, delta <= 1, 0 <= epsilon <= infinity. Not checked. Relative error at most
** 1e-12 wherever the result is a normal double.
*/
struct amplified amplify_dobrushin(double gamma, double epsilon, double delta);
struct amplified amplify_dobrushin_epsilon(double gamma, double epsilon, double delta);
struct amplified amplify_doeblin(double gamma, double epsilon, double delta);
struct amplified amplify_ultra(double gamma, double epsilon, double delta);

/*
** The epsilon~ at which part 2 needs the (gamma, epsilon~)-Dobrushin property: ln(1 + (e^epsilon -
** 1)/delta). 0 for epsilon = 0. Infinite for delta = 0 < epsilon; delta then stays 0 for every
** kernel.
*/
double mixing_epsilon(double epsilon, double delta);

/* A kernel: `rows` x `columns` probabilities, row after row. */
struct kernel {
  const double *probability;
  size_t rows;
  size_t columns;
};

double kernel_dobrushin(const struct kernel *kernel);
double kernel_doeblin(const struct kernel *kernel);

/* NaN if the supports of two rows differ, because no gamma then satisfies the definition. */
double kernel_ultra(const struct kernel *kernel);

/*
** max over x, x' of sum_y [weight K(x,y) - (weight + e^epsilon - 1) K(x',y)]_+, weight >= 0, 0 <=
** epsilon <= infinity. For weight 1 this is the contraction coefficient at e^epsilon. For weight =
** delta it is the delta of Theorem 1(2); it avoids the division, so it is also right at epsilon =
** 0.
*/
double kernel_hockey_stick(const struct kernel *kernel, double weight, double epsilon);

/*
** The least delta' such that every (epsilon, delta)-DP mechanism is (epsilon_out, delta')-DP after
** the kernel. Exact for every epsilon_out >= 0. Any (epsilon, delta)-DP pair of inputs is
** (epsilon_out, d)-DP with d = delta + (1-delta) [e^epsilon - e^epsilon_out]_+/(1+e^epsilon),
** attained by randomized response, and the worst pair after the kernel sits on two states only (the
** hockey-stick divergence is convex), so it is Theorem 1(2) at (epsilon_out, d).
*/
double kernel_worst_delta(const struct kernel *kernel, double epsilon, double delta,
                          double epsilon_out);

/*
** Renyi divergence, at each of `count` orders above 1 (infinity: pure differential privacy), of the
** worst pair of outputs when the kernel follows an epsilon-DP mechanism: exact. Any such pair of
** inputs is randomized response between two distributions (Kairouz, Oh and Viswanath 2015), the
** moment is convex in these two, so the worst are two states x, x': the divergence of (e^epsilon
** K(x) + K(x'))/(1 + e^epsilon) from its mirror image. 0 <= epsilon < 700. Relative error at most
** 1e-12 for every result above 1e-280. rest: corrections to be added to the probabilities, smaller
** than their rounding, or null. Returns 1, or 0 when out of memory.
*/
int kernel_rdp(const struct kernel *kernel, const double *rest, double epsilon,
               const double *orders, int count, double *rdp);

/*
** RDP of a mechanism whose privacy loss lies in an interval of length epsilon that contains 0, such
** as the exponential mechanism: min(alpha epsilon^2/8 (Cesar and Rogers 2021), response_rdp).
*/
double bounded_range_rdp(double alpha, double epsilon);

/*
** The epsilon at which response_rdp() costs a zCDP rate: epsilon tanh(epsilon/2) = rate. rate > 0.
*/
double response_epsilon(double rate);

/*
** Renyi divergence of binary randomized response with parameter epsilon, the worst case of any
** epsilon-DP mechanism. alpha >= 1, where 1 is the Kullback-Leibler divergence; infinity gives
** epsilon.
*/
double response_rdp(double alpha, double epsilon);

#endif
