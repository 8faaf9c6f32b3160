/* mechanisms.c: the table of mechanisms. */
#include "mechanism/mechanism.h"

const struct mechanism *const mechanisms[] = {&gaussian_mechanism,
                                              &sgd_gaussian,
                                              &sgd_iteration,
                                              &sgd_laplace_iteration,
                                              &laplace_mechanism,
                                              &sgd_laplace,
                                              &exponential_mechanism,
                                              &randomized_response,
                                              &local_randomisation,
                                              &ou_mechanism,
                                              0};

double mechanism_most_rate(const struct mechanism *mechanism) {
  return mechanism->noise ? mechanism->noise->most : CATEGORY_MAX_RATE;
}

const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family) {
  return mechanism->noise && mechanism->noise->in_sum_norm && family->l1 ? family->l1 : family;
}

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks) {
  return mechanism->shrinks == shrinks && (mechanism->statistics & family->statistic) != 0;
}
