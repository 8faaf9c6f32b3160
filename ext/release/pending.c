/* pending.c: see pending.h. Tests: tests/functions/test_statement_end.py */
#include "release/pending.h"

#include "release/publish.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

int pending_add(struct pending *pending, struct publication *publication) {
  if (pending->count == pending->room) {
    int room = 2 * pending->room + 1;
    struct publication *grown =
        sqlite3_realloc64(pending->publications, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) return 0;
    pending->publications = grown;
    pending->room = room;
  }
  pending->publications[pending->count++] = *publication;
  *publication = (struct publication){0};
  return 1;
}

void pending_keep(struct pending *pending) {
  int count = 0;
  int all = pending->count > 1 && publish_keep_all(pending->publications, pending->count);
  for (int i = 0; i < pending->count; i++) {
    struct publication *publication = &pending->publications[i];
    if (all || publish_keep(publication)) {
      publish_clear(publication);
    } else {
      pending->publications[count++] = *publication;
    }
  }
  pending->count = count;
}

void pending_revoke(struct pending *pending) {
  for (int i = 0; i < pending->count; i++) {
    publish_revoke(&pending->publications[i]);
    publish_clear(&pending->publications[i]);
  }
  pending->count = 0;
}

void pending_clear(struct pending *pending) {
  for (int i = 0; i < pending->count; i++) publish_clear(&pending->publications[i]);
  sqlite3_free(pending->publications);
  *pending = (struct pending){0};
}

void pending_settle(struct session *session) {
  for (struct pending *pending = session->pending; pending; pending = pending->next)
    if (pending->ended) pending_keep(pending);
}

int pending_begin_reading(struct session *session) {
  int count = 0;
  for (const struct pending *pending = session->pending; pending; pending = pending->next)
    count += pending->count;
  if (count) {
    int shown = ledger_begin(session->ledger);
    for (struct pending *pending = session->pending; pending; pending = pending->next)
      for (int i = 0; i < pending->count && shown; i++)
        shown = publish_store(&pending->publications[i]);
    if (shown && ledger_enter_periods(session->ledger)) return 1;
    /* Another connection may have discarded one of the pending releases. */
    if (!ledger_resume(session->ledger)) return 0;
  }
  return ledger_begin_reading(session->ledger);
}
