/*
** response_estimates.h: estimates how many rows are in each state of a kernel from the reports that
** the kernel has drawn, one for each row (responses.h).
*/
#ifndef DIFFUSE_CATEGORIES_RESPONSE_ESTIMATES_H
#define DIFFUSE_CATEGORIES_RESPONSE_ESTIMATES_H

#include "categories/markov_kernel.h"
#include "ledger/ledger.h"

/*
** Computes the weights W = (K K^T)^-1 K, a matrix of rows x columns, by Cholesky decomposition.
** If a report y is drawn from row x of the kernel K, the mean of the weight W[x'][y] is 1 for
** x' = x and 0 for every other x'. Returns 1, or 0 with the error set. The caller frees the weights
** with sqlite3_free().
*/
int response_weights(const struct chain *chain, double **weights, struct error *error);

/*
** Returns the estimate for a state, whose text is `key`, from `count` reports. The standard
** deviation of the estimate is the largest that any data gives. The 95% interval holds for any
** data, by Hoeffding's or Bernstein's inequality.
*/
struct ledger_value response_estimate(const struct chain *chain, const double *weights,
                                      const char *key, size_t state, const int64_t *reports,
                                      int64_t count);

#endif
