/*
** deferred.h: long computations that run while the ledger is not locked.
**
** Nobody else can use the ledger during a transaction, so a transaction should not compute for
** seconds. It works as follows:
**
**   1. A transaction with `defers` reads the ledger and finds out what it has to compute. It adds
**      what takes long to the list, and fails.
**   2. After the transaction has been rolled back, deferred_compute() computes what is on the list.
**   3. The next transaction reads the ledger again, and finds the results on the list.
**
** If the ledger has changed after step 1, the transaction finds nothing of use on the list. It
** repeats the steps, or computes what is missing itself if it does not defer.
*/
#ifndef DIFFUSE_RELEASE_DEFERRED_H
#define DIFFUSE_RELEASE_DEFERRED_H

#include "release/session.h"

/* A computation on the list: the first member of a struct that has its input and its result. */
struct computation {
  struct computation *next;
  int done;
  int (*compute)(struct session *session, struct computation *computation);
  void (*free)(struct computation *computation);
};

/* Returns whether the list has computations that are not done yet. */
int deferred_missing(const struct session *session);

/*
** Clears the error of the session, and does what is on the list. Call this function when no
** transaction is open. An interrupt of the host ends the computation. Returns 1, or 0 after setting
** the session's error.
*/
int deferred_compute(struct session *session);

/* Empties the list. */
void deferred_forget(struct session *session);

#endif
