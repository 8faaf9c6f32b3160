/* interrupts.h: interrupts of statements whose failure means something else to the extension. */
#ifndef DIFFUSE_QUERY_INTERRUPTS_H
#define DIFFUSE_QUERY_INTERRUPTS_H

#include <sqlite3ext.h>

/*
** Call this function after a statement of the extension has failed for whatever reason, if the
** extension goes on without its result. If the host's progress handler has interrupted it, the
** function interrupts the connection. Otherwise the host's wish would be lost, because a progress
** handler ends only the statement that calls it.
*/
void interrupt_pass_on(sqlite3 *db);

#endif
