/* tilt.h: how strongly a draw of the exponential mechanism prefers the better of its candidates. */
#ifndef DIFFUSE_MECHANISM_TILT_H
#define DIFFUSE_MECHANISM_TILT_H

#include <math.h>

#include "noise/noise.h"

/*
** The probability of candidate i is proportional to exp(step utility[i]), where step = exponent /
** 2^CATEGORICAL_SHIFT (noise/noise.h).
*/
struct tilt {
  uint64_t exponent;
  /*
  ** The length of the interval of the privacy loss, from which the cost of the draw follows. For
  ** randomized response (categories/mechanisms.c), the largest absolute value of this loss.
  */
  double epsilon;
};

/* The largest zCDP rate of a draw. Its epsilon is then below 600. */
#define TILT_MOST_RATE 500

/* The ledger has one theorem for all mechanisms with the name 'exponential'. */
#define EXPONENTIAL_THEOREM                                                                        \
  "exponential mechanism (McSherry and Talwar 2007), of bounded range (Dong, Durfee and Rogers "   \
  "2020; Cesar and Rogers 2021); for exact Gaussian accounting mu = 2 PhiInv(1/(1 + "              \
  "e^(-epsilon/2))); behind a kernel the worst pair of states"

/*
** Returns the tilt of a draw whose epsilon is at most `epsilon`. The changes that one unit makes to
** the utilities lie in an interval of length `range`, which is below 2^20.
*/
static inline struct tilt tilt_make(double epsilon, uint64_t range) {
  uint64_t exponent = (uint64_t)ldexp(epsilon / (double)range, CATEGORICAL_SHIFT);
  return (struct tilt){exponent, ldexp((double)exponent * (double)range, -CATEGORICAL_SHIFT)};
}

#endif
