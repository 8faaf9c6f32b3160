/* parameter_checks.h: defaults of parameters, and checks across them. */
#ifndef DIFFUSE_RELEASE_PARAMETER_CHECKS_H
#define DIFFUSE_RELEASE_PARAMETER_CHECKS_H

#include "release/parameters.h"

/*
** Set defaults and check parameters against each other. request_finish() does so for all
** parameters, request_finish_shape() for those that determine the layout of the sums.
*/
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

#endif
