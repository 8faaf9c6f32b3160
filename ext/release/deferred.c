/* deferred.c: see deferred.h. Tests: tests/functions/test_batch.py */
#include "release/deferred.h"

SQLITE_EXTENSION_INIT3

int deferred_missing(const struct session *session) {
  const struct computation *at = session->deferred.list;
  while (at && at->done) at = at->next;
  return at != 0;
}

int deferred_compute(struct session *session) {
  error_clear(&session->error);
  int going = ledger_begin_computing(session->ledger);
  for (struct computation *at = session->deferred.list; at && going; at = at->next)
    if (!at->done) going = at->done = at->compute(session, at);
  ledger_rollback(session->ledger);
  return going;
}

void deferred_forget(struct session *session) {
  struct computation *at = session->deferred.list;
  while (at) {
    struct computation *next = at->next;
    at->free(at);
    at = next;
  }
  session->deferred = (struct deferred){0, 0};
}
