/* default_mechanism.h: chooses the mechanism of a release whose options do not name one. */
#ifndef DIFFUSE_RELEASE_DEFAULT_MECHANISM_H
#define DIFFUSE_RELEASE_DEFAULT_MECHANISM_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Sets the mechanism of a request that does not name one. The publication has the tiers and the
** place of the request's tier among them, and, if `found`, the release that has the request's name.
** At a tier whose accountant does not cover Gaussian noise, this is the first mechanism of the kind
** whose noise the tier covers. For one quantile without keys at the outermost tier, it is the draw
** of a leaf (leaf_release.h) if this is more precise. At other tiers, for models, for dp_merge(),
** and for kinds without such a mechanism, the default of the kind stays. The choice depends on
** public parameters only. Returns 1, or 0 after setting the ledger's error.
*/
int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found);

/* Returns whether releases with Gaussian and with Laplace noise may share the budget of a tier. */
int tier_covers_all_noise(const struct ledger_tier *tier);

#endif
