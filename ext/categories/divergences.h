/*
** divergences.h: the costs of kernels.
**
** The cost of a kernel is a list of Renyi divergences of the worst pair of its rows (kernel_rdp).
** For a kernel with 64 states and 1024 outputs, this takes 20 seconds. In a transaction that
** defers, the divergences of a large kernel are therefore computed while the ledger is not locked
** (release/deferred.h). They are found again by the exact probabilities of the kernels, by epsilon
** and by the orders, so a transaction never takes a wrong divergence.
*/
#ifndef DIFFUSE_CATEGORIES_DIVERGENCES_H
#define DIFFUSE_CATEGORIES_DIVERGENCES_H

#include "categories/markov_kernel.h"
#include "release/session.h"

/*
** Sets rdp[i] to the largest Renyi divergence of order orders[i] between two output distributions
** of the chain, if an epsilon-DP mechanism draws the chain's first state. Returns 1, or 0 with the
** error set.
*/
int divergences_find(struct session *session, const struct chain *chain, double epsilon,
                     const double *orders, int count, double *rdp, struct error *error);

#endif
