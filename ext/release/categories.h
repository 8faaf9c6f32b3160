/*
** categories.h: releases of one symbol: drawn once from the data, then changed by public kernels
** only.
**
** The first symbol is one of the candidates, by the exponential mechanism or by randomized
** response. A tier outside it gets a symbol that a public Markov kernel makes of the last one,
** never of an earlier one: two children of one symbol would together reveal more than either. Costs
** are curves: that of the mechanism, and behind a kernel that of the worst pair of states
** (markov_kernel.h).
*/
#ifndef DIFFUSE_RELEASE_CATEGORIES_H
#define DIFFUSE_RELEASE_CATEGORIES_H

#include "release/procedure.h"

extern const struct procedure category_procedure;

/*
** The orders at which such a release has costs: the stored ones, then the filter orders of the
** tiers (not above 1: there is none). symbols_pay() charges costs at them, and notes them at the
** stored orders as the curve of the publication; null costs: out of memory.
*/
int symbols_order_count(const struct publication *publication);
double symbols_order_at(const struct publication *publication, int index);
int symbols_pay(struct publication *publication, const double *costs);

/*
** dp_mix() where the tier has a publication already, made by the kernel that is stored (null: by
** none): reads it back if the kernel is the same. 0 with the reason in the ledger.
*/
int mixes_again(struct publication *publication, const char *stored,
                const struct markov_kernel *channel);

#endif
