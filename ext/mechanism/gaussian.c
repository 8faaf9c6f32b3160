/*
** gaussian.c: the mechanisms with discrete Gaussian noise (gaussian_noise.c): 'gaussian' adds this
** noise to sums, and 'ou' also shrinks the published values.
** Tests: tests/mechanism/test_noise.py
*/
#include "mechanism/mechanism.h"

const struct mechanism gaussian_mechanism = {.name = "gaussian",
                                             .theorem = GAUSSIAN_THEOREM,
                                             .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                             .noise = &gaussian_noise,
                                             NOISY_SUMS};

const struct mechanism ou_mechanism = {.name = "ou",
                                       .theorem = GAUSSIAN_THEOREM,
                                       .statistics = STATISTIC_NUMBER | STATISTIC_VECTOR,
                                       .shrinks = 1,
                                       .noise = &gaussian_noise,
                                       NOISY_SUMS};
