/*
** bounded_loss.h: the costs of pure mechanisms whose privacy loss takes two values in the worst
** case: randomized response, and mechanisms of bounded range.
**
** The privacy loss of a mechanism of bounded range lies, for any two neighbours, in an interval of
** length epsilon that contains 0 (Dong, Durfee and Rogers 2020). The exponential mechanism is an
** example.
**
** Of all pairs of distributions whose loss lies in [t - epsilon, t], the one with the two losses t
** and t - epsilon is the worst for every test. Let P and Q be its probabilities of the loss t. Then
** logit P = logit Q + epsilon, whatever t is.
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
** Such a mechanism is mu-GDP (Dong, Roth and Su 2022) if mu is at least PhiInv(P) - PhiInv(Q) for
** every t: the tests of two losses are a broken line with one corner, and the tests of Gaussian
** noise are convex. epsilon < 600. With h(x) = PhiInv(1/(1 + e^-x)), this difference is h(x +
** epsilon) - h(x) for x = logit Q. The derivative of h is even and falls with |x|, because Phi(z)
** Phi(-z)/phi(z) falls with |z|. The difference is therefore largest at x = -epsilon/2, and mu = 2
** h(epsilon/2).
*/
double bounded_range_gaussian_rate(double epsilon);

/* Returns the epsilon whose bounded_range_gaussian_rate() is `rate` > 0. */
double bounded_range_gaussian_epsilon(double rate);

#endif
