/* default_mechanism.h: chooses the mechanism of a release whose options do not name one. */
#ifndef DIFFUSE_RELEASE_DEFAULT_MECHANISM_H
#define DIFFUSE_RELEASE_DEFAULT_MECHANISM_H

#include "release/parameters.h"

/*
** Sets the mechanism of a request that does not name one. At a tier whose accountant does not cover
** Gaussian noise, this is the first mechanism of the kind whose noise the tier covers. At other
** tiers, for models, for dp_merge(), and for kinds without such a mechanism, the default of the
** kind stays. Returns 1, or 0 when out of memory.
*/
int request_default_mechanism(struct request *request, const struct ledger_tier *tier,
                              struct error *error);

/* Returns whether releases with Gaussian and with Laplace noise may share the budget of a tier. */
int tier_covers_all_noise(const struct ledger_tier *tier);

#endif
