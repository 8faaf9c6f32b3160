/* lock.h: the lock of the ledger file, which every transaction holds. */
#ifndef DIFFUSE_LEDGER_LOCK_H
#define DIFFUSE_LEDGER_LOCK_H

#include "ledger/handle.h"

/*
** Waits for the lock. Returns 1 if this handle now holds the lock, already held it, or needs no
** lock. `writes` says whether the transaction will write.
*/
int lock_take(struct ledger *ledger, int writes);
void lock_drop(struct ledger *ledger);

#endif
