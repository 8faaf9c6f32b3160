/* interrupts.c: see interrupts.h. */
#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

void interrupt_pass_on(sqlite3 *db) {
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_INTERRUPT) sqlite3_interrupt(db);
}
