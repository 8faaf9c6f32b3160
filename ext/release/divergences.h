/*
** divergences.h: computes the costs of large kernels while the ledger is not locked.
**
** The cost of a kernel is a list of Renyi divergences of the worst pair of its rows (chain_rdp).
** For a kernel with 64 states and 1024 outputs, this takes 20 seconds. Nobody else can use the
** ledger during a transaction, so a transaction should not take that long. It works as follows:
**
**   1. A transaction with `defers` reads the ledger and finds the kernels whose costs it needs. For
**      a large kernel whose divergences are not in the list, divergences_find() adds the kernel to
**      the list and fails.
**   2. After the transaction has been rolled back, divergences_compute() computes what the list
**      lacks.
**   3. The next transaction reads the ledger again, and finds the divergences in the list.
**
** The list is indexed by the exact probabilities of the kernels, by epsilon and by the orders. If
** the ledger has changed after step 1, the transaction therefore never takes a wrong divergence. It
** repeats the steps, or computes the missing divergences itself if it does not defer.
*/
#ifndef DIFFUSE_RELEASE_DIVERGENCES_H
#define DIFFUSE_RELEASE_DIVERGENCES_H

#include "mechanism/markov_kernel.h"
#include "release/session.h"

/*
** Sets rdp[i] to the largest Renyi divergence of order orders[i] between two output distributions
** of the chain, if an epsilon-DP mechanism draws the chain's first state. Returns 1, or 0 with the
** error set.
*/
int divergences_find(struct session *session, const struct chain *chain, double epsilon,
                     const double *orders, int count, double *rdp, struct error *error);

/* Returns whether divergences_find() has added kernels that are not computed yet. */
int divergences_missing(const struct session *session);

/*
** Clears the error of the session, and computes what the list lacks. Call this function when no
** transaction is open. An interrupt of the host ends the computation. Returns 1, or 0 after setting
** the session's error.
*/
int divergences_compute(struct session *session);

/* Empties the list. */
void divergences_forget(struct session *session);

#endif
