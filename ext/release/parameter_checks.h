/* parameter_checks.h: defaults of parameters, and checks that involve several parameters. */
#ifndef DIFFUSE_RELEASE_PARAMETER_CHECKS_H
#define DIFFUSE_RELEASE_PARAMETER_CHECKS_H

#include "release/parameters.h"

/*
** request_finish() sets the defaults of all parameters and checks the parameters against each
** other. request_finish_shape() does the same only for the parameters that determine the layout of
** the sums. Both return 1, or 0 with the error set.
*/
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

/*
** Returns the number of leaves that a request for quantiles has with a mechanism. If the options do
** not give it, a draw of a leaf (mechanism/exponential.h) has more leaves than a tree, whose noise
** grows with them.
*/
double request_leaves(const struct request *request, const struct mechanism *mechanism);

#endif
