/* responses.h: local randomisation. A public Markov kernel changes every row's key before the key
** is counted (randomised response in the sense of Table 1 of Balle et al. 2019).
**
** Exactly n reports are drawn, one for each row whose key is a state of the kernel. If there are
** fewer than n rows, reports of the public state `otherwise` replace the missing rows. If there are
** more than n rows, n rows are chosen at random. Two neighbours differ in one row, and therefore in
** the distribution of one report. The states of the two rows decide how much these distributions
** differ. The cost of the release is the cost of one report for the worst pair of states. The
** release publishes an unbiased estimate of the number of rows in each state. For a tier further
** out, another kernel changes the reports, and the tier pays for the product of all kernels
** (mix.c).
**
** The text dp_release.model of such a release is {"n":...,"otherwise":"...","kernel":[...]}. */
#ifndef DIFFUSE_CATEGORIES_RESPONSES_H
#define DIFFUSE_CATEGORIES_RESPONSES_H

#include "categories/markov_kernel.h"
#include "ledger/ledger.h"
#include "release/release.h"

#define RESPONSE_MAX_ROWS 100000000 /* the largest n; each report is drawn separately */

/* The details of a request: the options that only a local randomisation has. */
struct survey_options {
  double reports; /* the number of reports, n */
  char *otherwise, *kernel;
};

/* Reads the kernel of a request from JSON, and makes its states the keys of the request. */
int responses_kernel(struct request *request, struct json *json, sqlite3_value *value,
                     struct error *error);

/* The public parameters of a local randomisation, which the ledger stores as the model. */
struct survey {
  int64_t reports;
  char *otherwise, *kernel;
  struct markov_kernel channel;
};

/* Reads the model. The caller must call survey_clear() also after an error. */
int survey_read(struct survey *survey, const struct publication *publication, struct error *error);
void survey_clear(struct survey *survey);

/* Adds `count` independent reports of a state to `reports`. Returns 0 if the host is interrupted or
** the system gives no random bytes. */
int responses_pass(struct ledger *ledger, const struct markov_kernel *channel, const char *state,
                   int64_t count, int64_t *reports);

/* Stores and publishes the reports and the estimates. At an outer tier, `kernel` made the reports
** from those of the next inner tier; otherwise it is null. */
int responses_publish(struct publication *publication, const struct survey *survey,
                      const struct chain *chain, char *const *symbols, int64_t *reports,
                      const char *kernel);

/* Steps of the procedure (release/procedure.h). */
int responses_finish(struct request *request, int by_unit, struct error *error);
void responses_clear(void *details);
void responses_prepare(const struct publication *publication, const struct request *request);
int responses_charge(struct publication *publication);
int responses_draw(struct publication *publication, const int64_t *counts);
int responses_keep(struct publication *publication);

/* ---- estimates ------------------------------------------------------------------------------- */

/* Computes the weights W = (K K^T)^-1 K, a matrix of rows x columns, by Cholesky decomposition.
** If a report y is drawn from row x of the kernel K, the mean of the weight W[x'][y] is 1 for
** x' = x and 0 for every other x'. Returns 1, or 0 with the error set. The caller frees the weights
** with sqlite3_free(). */
int response_weights(const struct chain *chain, double **weights, struct error *error);

/* Returns the estimate for a state, whose text is `key`, from `count` reports. The standard
** deviation of the estimate is the largest that any data gives. The 95% interval holds for any
** data, by Hoeffding's or Bernstein's inequality. */
struct ledger_value response_estimate(const struct chain *chain, const double *weights,
                                      const char *key, size_t state, const int64_t *reports,
                                      int64_t count);

#endif
