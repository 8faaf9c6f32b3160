/* chi_square.h: counts against probabilities. */
#ifndef TEST_CHI_SQUARE_H
#define TEST_CHI_SQUARE_H

#include <gsl/gsl_cdf.h>

#define LEAST_CELL 100 /* expected count of a cell; neighbours are pooled until they have it */

/* p-value of counts of this total against probabilities, which add up to 1. */
static double p_value(const long *counts, const long double *probability, int cells, double total) {
  double sum = 0, seen = 0, expected = 0, rest = total;
  int pooled = 0;
  for (int i = 0; i < cells; i++) {
    seen += (double)counts[i];
    expected += (double)probability[i] * total;
    if (i + 1 < cells && (expected < LEAST_CELL || rest - expected < LEAST_CELL)) continue;
    if (expected > 0) sum += (seen - expected) * (seen - expected) / expected;
    if (!(expected > 0) && seen > 0) return 0; /* what cannot be */
    rest -= expected;
    seen = expected = 0;
    pooled++;
  }
  return pooled > 1 ? gsl_cdf_chisq_Q(sum, pooled - 1) : 1;
}

#endif
