/* default_mechanism.h: the mechanism of a release that asks for none. */
#ifndef DIFFUSE_RELEASE_DEFAULT_MECHANISM_H
#define DIFFUSE_RELEASE_DEFAULT_MECHANISM_H

#include "release/parameters.h"

/*
** Sets the mechanism of a request that asks for none. At a tier whose accountant does not cover
** Gaussian noise, the default is the first noise of the kind that this tier covers. Other tiers,
** models, and kinds without such noise keep the default of the kind. Returns 1, or 0 when out of
** memory.
*/
int request_default_mechanism(struct request *request, const struct ledger_tier *tier,
                              struct error *error);

/* Returns whether releases with Gaussian and with Laplace noise may share the budget of a tier. */
int tier_covers_all_noise(const struct ledger_tier *tier);

#endif
