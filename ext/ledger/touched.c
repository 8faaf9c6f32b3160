/* touched.c: see touched.h. Tests: tests/ledger/test_edits.py */
#include "ledger/touched.h"

SQLITE_EXTENSION_INIT3

void touched_add(struct ledger *ledger, int64_t subject) {
  struct touched *touched = &ledger->touched;
  /*
  ** The loop looks for the subject only in the last few entries. If it misses an earlier entry, the
  ** list contains the subject twice, which does no harm.
  */
  for (int i = touched->count; i > 0 && i > touched->count - 4; i--) {
    if (touched->subjects[i - 1] == subject) return;
  }
  if (touched->count == touched->room) {
    int room = 2 * touched->room + 4;
    int64_t *grown = sqlite3_realloc64(touched->subjects, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) {
      ledger_fail(ledger, "out of memory");
      return;
    }
    touched->subjects = grown;
    touched->room = room;
  }
  touched->subjects[touched->count++] = subject;
}

void touched_forget(struct ledger *ledger) {
  sqlite3_free(ledger->touched.subjects);
  ledger->touched = (struct touched){0};
}

int touched_has(const struct ledger *ledger, int64_t subject) {
  for (int i = 0; i < ledger->touched.count; i++) {
    if (ledger->touched.subjects[i] == subject) return 1;
  }
  return 0;
}
