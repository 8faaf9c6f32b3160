/*
** bounded_loss.h: the costs of pure mechanisms whose privacy loss takes two values in the worst
** case: randomized response, and mechanisms of bounded range.
**
** The privacy loss of a mechanism of bounded range lies, for any two neighbours, in an interval of
** length epsilon that contains 0 (Dong, Durfee and Rogers 2020). The exponential mechanism is an
** example.
*/
#ifndef DIFFUSE_MATH_BOUNDED_LOSS_H
#define DIFFUSE_MATH_BOUNDED_LOSS_H

/*
** Returns the epsilon at which randomized response has the zCDP rate `rate` > 0: the root of
** epsilon tanh(epsilon/2) = rate.
*/
double response_epsilon(double rate);

/*
** Returns the Renyi divergence of order alpha >= 1 of binary randomized response with parameter
** epsilon. This is the worst case of all epsilon-DP mechanisms. Order 1 gives the Kullback-Leibler
** divergence, and order infinity gives epsilon.
*/
double response_rdp(double alpha, double epsilon);

/*
** Returns the RDP at order alpha of a mechanism of bounded range epsilon. The result is the smaller
** of alpha epsilon^2/8 (Cesar and Rogers 2021) and response_rdp().
*/
double bounded_range_rdp(double alpha, double epsilon);

/*
** Returns the zCDP rate mu^2/2 of Gaussian noise that is at least as easy to test as every
** mechanism of bounded range epsilon, so that exact Gaussian accounting may charge this rate.
**
** mu = 2 PhiInv(1/(1 + e^(-epsilon/2))); README.md has the proof. epsilon < 600.
*/
double bounded_range_gaussian_rate(double epsilon);

/* Returns the epsilon whose bounded_range_gaussian_rate() is `rate` > 0. */
double bounded_range_gaussian_epsilon(double rate);

#endif
