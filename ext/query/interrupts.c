/* interrupts.c: see interrupts.h. Tests: tests/query/test_question_rules.py */
#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

void interrupt_pass_on(sqlite3 *db) {
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_INTERRUPT) sqlite3_interrupt(db);
}
