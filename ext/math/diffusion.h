/* diffusion.h: Brownian motion and the Ornstein-Uhlenbeck (OU) process as privacy mechanisms (Balle
** et al. 2019, section 5).
**
** A diffusion mechanism starts a process in f(D), the answer of a query f on the data D, and
** releases its value at time t. Every process here has a clock tau, which grows with t. The
** released value is f(D) + N(0, tau I) after it has been shrunk towards a centre, by a factor that
** does not depend on the data. The zCDP rate of the mechanism is exactly sensitivity^2/(2 tau).
**     Brownian motion (Example 4):      variance 2t per coordinate, tau = 2t.
**     OU (Theorem 6, Corollary 7):      dX = -theta (X - centre) dt + sqrt(2) rho dW,
**         shrink b = e^(-theta t), variance rho^2 (1 - e^(-2 theta t))/theta = b^2 tau.
** theta = 0 means Brownian motion with variance 2 rho^2 t.
**
** Norms, radii and sensitivities are in the unit of f; t and 1/theta share a unit of time, and rho
** is in the unit of f divided by its square root. Clocks, variances and mean squared errors (MSE)
** are in the square of the unit of f. Every argument is finite and >= 0; rho, radius and dimension
** are positive; sensitivity and t are not both 0 where the formula would be 0/0. The functions do
** not check this. The relative error is at most 1e-12 wherever the result is a normal double. */
#ifndef DIFFUSE_MATH_DIFFUSION_H
#define DIFFUSE_MATH_DIFFUSION_H

#include <stddef.h>

/* Theorem 6 for any diffusion: the zCDP rate at time t is at most the integral of kappa from t to
** infinity. Here kappa(s) = sup_y Gamma(ln p_s(x, y)/p_s(x', y)), and Gamma is the carre du champ
** operator. The caller passes kappa at the times s of an ascending grid that starts at t, and an
** upper bound `tail` on the integral from the last time on. The result is an upper bound on the
** rate if the condition of `rule` holds between any two neighbouring times of the grid:
**     RATE_STEPS       kappa is nowhere above the value given for the earlier time, because kappa
**                      decreases or because the caller passes upper bounds;
**     RATE_CONVEX      kappa is convex: the function integrates the chord above kappa;
**     RATE_LOG_CONVEX  ln kappa is convex: the function integrates the exponential above kappa.
** The functions kappa of Brownian motion and of OU (brownian_gamma, ou_gamma) meet all of them. */
enum rate_rule { RATE_STEPS, RATE_CONVEX, RATE_LOG_CONVEX };
struct rate_point {
  double s, kappa;
};
double diffusion_rate(const struct rate_point *grid, size_t count, double tail,
                      enum rate_rule rule);

/* kappa at time s: sensitivity^2/(4 s^2) for Brownian motion, and for OU (theta sensitivity
** e^(theta s)/(rho (e^(2 theta s) - 1)))^2. */
double brownian_gamma(double sensitivity, double s);
double ou_gamma(double sensitivity, double theta, double rho, double s);

/* The zCDP rates of Brownian motion, sensitivity^2/(4 t), and of OU (Corollary 7), sensitivity^2/(2
** tau). At t = 0 the rate is infinite, or 0 if the sensitivity is 0. */
double brownian_rate(double sensitivity, double t);
double ou_rate(double sensitivity, double theta, double rho, double t);

/* The clock tau = rho^2 (e^(2 theta t) - 1)/theta, and the time t of a clock. */
double ou_clock(double theta, double rho, double t);
double ou_time(double theta, double rho, double clock);

/* The variance of each published coordinate, and e^(-theta t), by which the mean shrinks. */
double ou_variance(double theta, double rho, double t);
double ou_shrink(double theta, double t);

/* The mean squared errors of three mechanisms in `dimension` dimensions with the zCDP rate of
** OU(theta, rho) at time t (equation (4) and the text around it): of OU if the true answer is at
** distance `norm` from the centre, (1-b)^2 norm^2 + b^2 dimension tau; of the plain Gaussian
** mechanism, dimension tau; and of the Gaussian mechanism whose result is shrunk by the best
** constant (PGM in the paper), for the worst true answer within `radius` of the centre, dimension
** tau radius^2/(radius^2 + dimension tau). */
double ou_mse(double theta, double rho, double t, double norm, double dimension);
double gaussian_mse(double theta, double rho, double t, double dimension);
double pgm_mse(double theta, double rho, double t, double radius, double dimension);

/* Theorem 8 at t = 1: the OU process with the least worst-case error. ou_best_theta() returns ln(1
** + x) with x = dimension sensitivity^2/(2 rate radius^2), and ou_best_rho() the rho at which OU
** with this theta has the zCDP rate `rate`. Among all shrink factors for Gaussian noise of this
** rate, that of this process has the least worst-case MSE over the ball of this radius. rate and
** sensitivity are > 0. */
double ou_best_theta(double rate, double sensitivity, double radius, double dimension);
double ou_best_rho(double rate, double sensitivity, double radius, double dimension);

/* The shrink factors at any clock: of Theorem 8, radius^2/(radius^2 + dimension clock), and of
** OU(theta, rho), 1/sqrt(1 + theta clock/rho^2). */
double ou_shrink_radius(double radius, double dimension, double clock);
double ou_shrink_process(double theta, double rho, double clock);

#endif
