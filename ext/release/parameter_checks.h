/* parameter_checks.h: defaults of parameters, and checks across them. */
#ifndef DIFFUSE_RELEASE_PARAMETER_CHECKS_H
#define DIFFUSE_RELEASE_PARAMETER_CHECKS_H

#include "release/parameters.h"

/* Defaults and checks across parameters: of all, or of those that shape the sums. */
int request_finish(struct request *request, int by_unit, struct error *error);
int request_finish_shape(struct request *request, int by_unit, struct error *error);

#endif
