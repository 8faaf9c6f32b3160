/*
** responses.h: local randomisation. A public Markov kernel changes every row's key before the key
** is counted (randomised response in the sense of Table 1 of Balle et al. 2019).
**
** Exactly n reports are drawn, one for each row whose key is a state of the kernel. If there are
** fewer than n rows, reports of the public state `otherwise` replace the missing rows. If there are
** more than n rows, n rows are chosen at random. Two neighbours differ in one row, and therefore in
** the distribution of one report. The states of the two rows decide how much these distributions
** differ. The cost of the release is the cost of one report for the worst pair of states. The
** release publishes an unbiased estimate of the number of rows in each state. For a tier further
** out, another kernel changes the reports, and the tier pays for the product of all kernels.
** (categories.h does the same for one category.)
**
** The text dp_release.model of such a release is {"n":...,"otherwise":"...","kernel":[...]}.
*/
#ifndef DIFFUSE_CATEGORIES_RESPONSES_H
#define DIFFUSE_CATEGORIES_RESPONSES_H

#include "categories/markov_kernel.h"
#include "release/parameters.h"
#include "release/procedure.h"

#define RESPONSE_MAX_ROWS 100000000 /* the largest n; each report is drawn separately */

/* The details of a request: the options that only a local randomisation has. */
struct survey_options {
  double reports; /* the number of reports, n */
  char *otherwise, *kernel;
};

/*
** Reads the kernel of a request from JSON, and sets the keys of the request to the kernel's states.
** Returns 1, or 0 with the error set.
*/
int responses_kernel(struct request *request, struct json *json, sqlite3_value *value,
                     struct error *error);

/* Draws reports at the publication's tier from the last reports, by a kernel (dp_mix). */
int responses_mix(struct publication *publication, const struct markov_kernel *channel);

extern const struct procedure response_procedure;

#endif
