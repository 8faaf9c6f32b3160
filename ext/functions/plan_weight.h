/*
** plan_weight.h: the option half_width of dp_plan() and dp_batch(), which asks for the least weight
** whose 95% half-width is at most this number.
*/
#ifndef DIFFUSE_FUNCTIONS_PLAN_WEIGHT_H
#define DIFFUSE_FUNCTIONS_PLAN_WEIGHT_H

#include "functions/host.h"
#include "release/parameters.h"

/*
** Returns the number of rows from which one value of a release is computed: all rows, or the rows
** of one group. Both numbers are guesses in the request. Without a guess, returns NaN.
*/
double plan_rows(const struct request *request);

/*
** Sets the weight of the request if the request has a half_width. Call plan_weight() inside a
** transaction. Returns 1, or 0 with the error of the session set.
*/
int plan_weight(struct request *request, struct host *host);

#endif
