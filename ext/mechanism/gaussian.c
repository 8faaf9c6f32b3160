/*
** gaussian.c: the mechanisms with discrete Gaussian noise (gaussian_noise.c): 'gaussian' adds this
** noise to sums, and 'ou' also shrinks the published values.
** Tests: tests/mechanism/test_noise.py
*/
#include "mechanism/mechanism.h"

#define THEOREM                                                                                    \
  "discrete Gaussian: sensitivity^2 / (2 variance) (Canonne, Kamath and Steinke 2020, Theorem 4);" \
  " charged as sensitivity^2 / (2 (variance - 1/12))"

const struct mechanism gaussian_mechanism = {.name = "gaussian",
                                             .theorem = THEOREM,
                                             .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                             .noise = &gaussian_noise,
                                             NOISY_SUMS};

const struct mechanism ou_mechanism = {.name = "ou",
                                       .theorem = THEOREM,
                                       .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                       .shrinks = 1,
                                       .noise = &gaussian_noise,
                                       NOISY_SUMS};
