/*
** reports.h: local randomisation. A public Markov kernel changes every row's key before the key is
** counted (randomised response in the sense of Table 1 of Balle et al. 2019).
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
#ifndef DIFFUSE_RELEASE_REPORTS_H
#define DIFFUSE_RELEASE_REPORTS_H

#include "release/parameters.h"
#include "release/procedure.h"

#define RESPONSE_MAX_ROWS 100000000 /* the largest n; each report is drawn separately */

/*
** Reads the kernel of a request from JSON, and sets the keys of the request to the kernel's states.
** Returns 1, or 0 with the error set.
*/
int responses_kernel(struct request *request, struct json *json, const char *text,
                     struct error *error);

/*
** Checks the parameters of a local randomisation against each other, and sets the model of the
** request. Returns 1, or 0 with the error set.
*/
int responses_finish(struct request *request, int by_unit, struct error *error);

/*
** Computes the cost of a local randomisation with this model, for the tiers of the publication.
** Call this function in a transaction with `defers`, so that it notes what has to be computed
** before the charge (divergences.h). Reports no error, because the charge will report it.
*/
void responses_weigh(const struct publication *publication, char *model);

extern const struct procedure report_procedure;

#endif
