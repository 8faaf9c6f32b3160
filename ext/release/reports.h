/*
** reports.h: local randomisation: every row's key is sent through a public Markov kernel before
** it is counted (randomised response in the sense of Table 1 of Balle et al. 2019).
**
** Exactly n reports are drawn, one for each row whose key is a state of the kernel; a state that is
** named in public reports for the rows that are missing, and of too many rows n are chosen at
** random. So two neighbours, which differ in one row, differ in the law of one report, and the
** release costs what the worst pair of rows of the kernel costs. What is published is an unbiased
** estimate of how many rows have each state. A tier further out gets the reports through another
** kernel, and pays for the product of all (categories.h has the same for one symbol).
**
** The model of such a release is the text {"n":...,"otherwise":"...","kernel":[...]}.
*/
#ifndef DIFFUSE_RELEASE_REPORTS_H
#define DIFFUSE_RELEASE_REPORTS_H

#include "release/parameters.h"
#include "release/procedure.h"

#define RESPONSE_MAX_ROWS 100000000 /* n: each is drawn */

/* The kernel of a request, read from JSON: its states are the keys. */
int responses_kernel(struct request *request, struct json *json, const char *text,
                     struct error *error);

/* Checks a request across its parameters, and sets its model. */
int responses_finish(struct request *request, int by_unit, struct error *error);

extern const struct procedure report_procedure;

#endif
