/* interrupt.h: waiting, and interrupts of the host. */
#ifndef DIFFUSE_LEDGER_INTERRUPT_H
#define DIFFUSE_LEDGER_INTERRUPT_H

#include "ledger/handle.h"

/* Sets the members heeds_host and is_patient, which decide how the following transactions wait. */
void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient);

/* Starts the time limit for waiting. */
void wait_start(struct ledger *ledger);

/*
** Waits for a few milliseconds. Returns 0 if the time limit is over or the host is interrupted.
** `calls` is the number of earlier calls for the same wait.
*/
int wait_moment(struct ledger *ledger, int calls);

#endif
