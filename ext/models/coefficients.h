/* coefficients.h: the family of models, whose estimates are the coefficients. */
#ifndef DIFFUSE_MODELS_COEFFICIENTS_H
#define DIFFUSE_MODELS_COEFFICIENTS_H

#include "sums/family.h"

extern const struct family family_sgd; /* a step of a descent, not a sum (sgd.h) */

#endif
