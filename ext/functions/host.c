/* host.c: see host.h. Tests: tests/functions/test_aggregate_form.py */
#include "functions/host.h"

#include "functions/tier_guard.h"
#include "ledger/ledger.h"
#include "os/thread.h"
#include "release/figure_words.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/*
** The hosts of all connections of this process. host_is_complete() searches this list, because a
** connection has no pointer to its host.
*/
static struct mutex mutex = MUTEX_INITIALIZER;
static struct host *hosts;

int host_is_complete(sqlite3 *db) {
  int complete = 0;
  mutex_lock(&mutex);
  for (const struct host *host = hosts; host; host = host->next)
    complete |= host->collector.db == db && host->complete;
  mutex_unlock(&mutex);
  return complete;
}

struct host *host_new(sqlite3 *db, int (*register_others)(sqlite3 *db)) {
  static const struct ledger_kinds kinds = {kind_display, figure_words, figure_component,
                                            figure_append_move};
  struct host *host = sqlite3_malloc(sizeof *host);
  if (!host) return 0;
  *host = (struct host){.references = 1, .collector = {db, 0}, .register_others = register_others};
  host->session.error.caller = db;
  host->session.ledger = ledger_new(db, &kinds, &host->session.error);
  if (!host->session.ledger) {
    sqlite3_free(host);
    return 0;
  }
  mutex_lock(&mutex);
  host->next = hosts;
  hosts = host;
  mutex_unlock(&mutex);
  return host;
}

struct host *host_retain(struct host *host) {
  if (host) host->references++;
  return host;
}

void host_release(struct host *host) {
  if (!host || --host->references > 0) return;
  mutex_lock(&mutex);
  struct host **place = &hosts;
  while (*place != host) place = &(*place)->next;
  *place = host->next;
  mutex_unlock(&mutex);
  tier_guard_free(host->guard);
  ledger_free(host->session.ledger);
  error_clear(&host->session.error);
  sqlite3_free(host);
}

void host_release_pointer(void *host) {
  host_release(host);
}
