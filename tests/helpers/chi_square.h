/* chi_square.h: a chi-square test that compares counts with probabilities. */
#ifndef TEST_CHI_SQUARE_H
#define TEST_CHI_SQUARE_H

#include <gsl/gsl_cdf.h>

/* Least expected count of a cell. p_value() pools neighbouring values until a cell has this
** expected count. */
#define LEAST_CELL 100

/* Returns the p-value of `counts`, which add up to `total`. The probabilities add up to 1. */
static double p_value(const long *counts, const long double *probability, int cells, double total) {
  double sum = 0, seen = 0, expected = 0, rest = total;
  int pooled = 0;
  for (int i = 0; i < cells; i++) {
    seen += (double)counts[i];
    expected += (double)probability[i] * total;
    if (i + 1 < cells && (expected < LEAST_CELL || rest - expected < LEAST_CELL)) continue;
    if (expected > 0) sum += (seen - expected) * (seen - expected) / expected;
    if (!(expected > 0) && seen > 0) return 0; /* the counts contain a value of probability 0 */
    rest -= expected;
    seen = expected = 0;
    pooled++;
  }
  return pooled > 1 ? gsl_cdf_chisq_Q(sum, pooled - 1) : 1;
}

#endif
