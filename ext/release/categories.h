/*
** categories.h: releases of one category. Only the first draw reads the data; public kernels then
** change the category.
**
** The first category is one of the candidates. The exponential mechanism or randomized response
** draws it. For a tier further out, a public Markov kernel draws a new category from the last one,
** never from an earlier one: two categories drawn from the same one would together reveal more than
** either. Costs are curves. The first cost is that of the mechanism; after a kernel, the cost is
** that of the worst pair of states (markov_kernel.h).
*/
#ifndef DIFFUSE_RELEASE_CATEGORIES_H
#define DIFFUSE_RELEASE_CATEGORIES_H

#include "release/procedure.h"

extern const struct procedure category_procedure;

/*
** Such a release has costs at the stored orders, followed by the filter orders of the tiers. A
** value of at most 1 means that the tier has no order. symbols_pay() charges the costs at these
** orders and keeps those at the stored orders as the publication's curve. It reports an
** out-of-memory error when costs is null.
*/
int symbols_order_count(const struct publication *publication);
double symbols_order_at(const struct publication *publication, int index);
int symbols_pay(struct publication *publication, const double *costs);

/*
** Handles dp_mix() at a tier that already has a publication. `stored` is the kernel that made it;
** null means that no kernel did. Reads the publication back if the kernel is the same. Returns 0
** with the reason in the ledger otherwise.
*/
int mixes_again(struct publication *publication, const char *stored,
                const struct markov_kernel *channel);

#endif
