/*
** bounds_use.h: the rule for bounds that a release of kind 'bounds' published.
**
** Published bounds carry information. If another release takes its clip or its range from them,
** this information reaches every tier at which that release is published, through the clip and
** the lattice. The bounds may therefore be used at the tier where they were published, and inside
** this tier. An outer tier uses the bounds that dp_diffuse() published there.
*/
#ifndef DIFFUSE_RELEASE_BOUNDS_USE_H
#define DIFFUSE_RELEASE_BOUNDS_USE_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Checks that `request` takes no parameter from `bounds` that the outermost tier of the request
** does not see. `bounds` is a publication that has its answer. The function compares the parameter
** with the published ends, both without their signs. A parameter other than 0 counts as taken from
** an end if it equals an end that was published further in than the request's outermost tier. It
** does not count if it also equals an end that the outermost tier sees, or if it is the default. If
** `bounds` is of another kind, the function does nothing and returns 1. Otherwise returns 1, or 0
** with an error. Call bounds_use_check() inside a transaction.
*/
int bounds_use_check(const struct publication *bounds, const struct request *request);

#endif
