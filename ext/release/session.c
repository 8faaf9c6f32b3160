/* session.c: see session.h. Tests: tests/ledger/test_files.py */
#include "release/session.h"

#include <string.h>

const struct publication *session_pending(const struct session *session, int64_t release_id,
                                          const char *tier) {
  for (const struct pending *pending = session->pending; pending; pending = pending->next) {
    for (int i = 0; i < pending->count; i++) {
      const struct publication *publication = &pending->publications[i];
      if (publication->definition.release.id == release_id &&
          strcmp(publication_tier(publication)->name, tier) == 0)
        return publication;
    }
  }
  return 0;
}
