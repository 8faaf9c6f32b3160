/*
** diffusion.h: Brownian motion and the Ornstein-Uhlenbeck (OU) process as privacy mechanisms
** (Balle et al. 2019, section 5).
**
** A diffusion mechanism starts a process in f(D) and releases its value at time t. In terms of its
** clock tau, this value is a point of a Brownian path, f(D) + N(0, tau I), that is then shrunk
** towards the centre by a fixed factor. Its zCDP rate is exactly sensitivity^2/(2 tau).
**     Brownian motion (Example 4):      variance 2t per coordinate, tau = 2t.
**     OU (Theorem 6, Corollary 7):      dX = -theta (X - centre) dt + sqrt(2) rho dW,
**         shrink b = e^(-theta t), variance rho^2 (1 - e^(-2 theta t))/theta = b^2 tau.
** theta = 0 is Brownian motion with variance 2 rho^2 t everywhere.
**
** Norms, radii, sensitivities and rho are in the unit of f; t and 1/theta share a unit of time; a
** clock, a variance and a mean squared error (MSE) are in the square of the unit of f.
** Conditions: every argument is finite and not negative; rho, radius and dimension are positive,
** and so is sensitivity or t where the result would be 0/0. The functions do not check them.
** Relative error is at most 1e-12 wherever the result is a normal double.
*/
#ifndef DIFFUSE_MATH_DIFFUSION_H
#define DIFFUSE_MATH_DIFFUSION_H

#include <stddef.h>

/*
** Theorem 6 for any diffusion: the zCDP rate at time t is at most the integral of kappa from t to
** infinity, where kappa(s) = sup_y Gamma(ln p_s(x, y)/p_s(x', y)) and Gamma is the carre du champ.
** The caller gives the values of kappa at the times s of an ascending grid that starts at t, and
** `tail`, a bound on the integral from the last time to infinity. The result is a bound on the
** integral if, between two times,
**     RATE_STEPS       kappa is at most its value at the earlier of them (it decreases, or the
**                      values are bounds);
**     RATE_CONVEX      kappa is convex: the trapezoid above it;
**     RATE_LOG_CONVEX  ln kappa is convex: the exponential above it. It holds, as convexity does,
**                      for Brownian motion and OU, of which brownian_gamma and ou_gamma are kappa.
*/
enum rate_rule { RATE_STEPS, RATE_CONVEX, RATE_LOG_CONVEX };
struct rate_point {
  double s, kappa;
};
double diffusion_rate(const struct rate_point *grid, size_t count, double tail,
                      enum rate_rule rule);

/* sensitivity^2/(4 s^2), and (theta sensitivity e^(theta s)/(rho (e^(2 theta s) - 1)))^2. */
double brownian_gamma(double sensitivity, double s);
double ou_gamma(double sensitivity, double theta, double rho, double s);

/*
** zCDP rate of Brownian motion, sensitivity^2/(4 t). At t = 0 it is infinite unless sensitivity is
** 0.
*/
double brownian_rate(double sensitivity, double t);

/*
** zCDP rate of OU (Corollary 7), sensitivity^2/(2 tau). At t = 0 it is infinite unless sensitivity
** is 0.
*/
double ou_rate(double sensitivity, double theta, double rho, double t);

/* The clock tau = rho^2 (e^(2 theta t) - 1)/theta, and the time at which a clock is reached. */
double ou_clock(double theta, double rho, double t);
double ou_time(double theta, double rho, double clock);

/* Variance of each published coordinate, and the shrink e^(-theta t) of the mean to the centre. */
double ou_variance(double theta, double rho, double t);
double ou_shrink(double theta, double t);

/*
** Mean squared errors (equation (4) and the text around it), all at the privacy of OU(theta, rho)
** at time t, in `dimension` dimensions. The true answer is at distance `norm` from the centre, or
** within `radius` of it. ou_mse: OU, (1-b)^2 norm^2 + b^2 dimension tau. gaussian_mse: the plain
** Gaussian, dimension tau. pgm_mse: the worst case of the Gaussian shrunk by the best constant
** (PGM), dimension tau radius^2/(radius^2 + dimension tau).
*/
double ou_mse(double theta, double rho, double t, double norm, double dimension);
double gaussian_mse(double theta, double rho, double t, double dimension);
double pgm_mse(double theta, double rho, double t, double radius, double dimension);

/*
** Theorem 8 at t = 1: theta = ln(1 + x), x = dimension sensitivity^2/(2 rate radius^2), and rho
** such that the rate is `rate`. Among all shrinks at this rate, that of OU then has the least
** worst-case MSE over the ball of this radius. rate, sensitivity > 0.
*/
double ou_best_theta(double rate, double sensitivity, double radius, double dimension);
double ou_best_rho(double rate, double sensitivity, double radius, double dimension);

/* The shrink of Theorem 8 at any clock: radius^2/(radius^2 + dimension clock). */
double ou_shrink_radius(double radius, double dimension, double clock);

/*
** The shrink of the homogeneous process when its clock shows `clock`: 1/sqrt(1+theta clock/rho^2).
*/
double ou_shrink_process(double theta, double rho, double clock);

#endif
