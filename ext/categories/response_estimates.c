/* response_estimates.c: see response_estimates.h. Tests: tests/categories/test_responses.py */
#include "categories/response_estimates.h"

#include <math.h>
#include <string.h>

#include "math/cost.h"

SQLITE_EXTENSION_INIT3

int response_weights(const struct chain *chain, double **weights, struct error *error) {
  size_t rows = chain->rows, columns = chain->columns;
  double *gram = sqlite3_malloc64(sizeof *gram * rows * rows);
  *weights = sqlite3_malloc64(sizeof **weights * rows * columns);
  int is_regular = 1;
  if (!gram || !*weights) {
    sqlite3_free(gram);
    return error_set_memory(error);
  }
  memcpy(*weights, chain->high, sizeof **weights * rows * columns);
  for (size_t i = 0; i < rows && is_regular; i++) {
    double whole = 0;
    for (size_t j = 0; j <= i; j++) {
      double sum = 0;
      for (size_t y = 0; y < columns; y++)
        sum += chain->high[i * columns + y] * chain->high[j * columns + y];
      if (i == j) whole = sum;
      for (size_t k = 0; k < j; k++) sum -= gram[i * rows + k] * gram[j * rows + k];
      gram[i * rows + j] = j < i ? sum / gram[j * rows + j] : sqrt(sum);
      if (i == j) is_regular = sum > 1e-10 * whole;
    }
  }
  for (size_t i = 0; i < rows && is_regular; i++) { /* forward substitution */
    for (size_t y = 0; y < columns; y++) {
      double sum = (*weights)[i * columns + y];
      for (size_t k = 0; k < i; k++) sum -= gram[i * rows + k] * (*weights)[k * columns + y];
      (*weights)[i * columns + y] = sum / gram[i * rows + i];
    }
  }
  for (size_t i = rows; i-- > 0 && is_regular;) { /* backward substitution */
    for (size_t y = 0; y < columns; y++) {
      double sum = (*weights)[i * columns + y];
      for (size_t k = i + 1; k < rows; k++) sum -= gram[k * rows + i] * (*weights)[k * columns + y];
      (*weights)[i * columns + y] = sum / gram[i * rows + i];
    }
  }
  sqlite3_free(gram);
  return is_regular
             ? 1
             : error_set(error, "the rows of the kernel are too close to linear combinations of "
                                "each other: reports do not tell how many rows have which x");
}

/*
** Bounds on what one report adds to the estimate of a state. The bounds hold for every row of data.
*/
struct spread {
  double variance, range, deviation; /* variance and deviation are the largest of all kernel rows */
};

static struct spread spread_of(const struct chain *chain, const double *weight, size_t state) {
  struct spread spread = {0, 0, 0};
  double low = INFINITY, high = -INFINITY;
  for (size_t x = 0; x < chain->rows; x++) {
    double mean = x == state, variance = 0;
    for (size_t y = 0; y < chain->columns; y++) {
      double p = chain->high[x * chain->columns + y], off = weight[y] - mean;
      if (!(p > 0)) continue;
      variance += p * off * off;
      spread.deviation = fmax(spread.deviation, fabs(off));
      low = fmin(low, weight[y]);
      high = fmax(high, weight[y]);
    }
    spread.variance = fmax(spread.variance, variance);
  }
  spread.range = high - low;
  return spread;
}

struct ledger_value response_estimate(const struct chain *chain, const double *weights,
                                      const char *key, size_t state, const int64_t *reports,
                                      int64_t count) {
  const double *weight = &weights[state * chain->columns];
  struct spread spread = spread_of(chain, weight, state);
  double value = 0, n = (double)count, certainty = log(2 / 0.05);
  for (size_t y = 0; y < chain->columns; y++) value += weight[y] * (double)reports[y];
  double hoeffding = spread.range * sqrt(n * certainty / 2),
         part = spread.deviation * certainty / 3;
  double bernstein = part + sqrt(part * part + 2 * n * spread.variance * certainty);
  double half = published_up(fmin(hoeffding, bernstein)) + 1e-9 * n;
  double stddev = published_up(sqrt(n * spread.variance));
  double low = nextafter(value - half, -INFINITY), high = nextafter(value + half, INFINITY);
  return (struct ledger_value){key, 0, value, stddev, low, high};
}
