/* host.c: see host.h. */
#include "functions/host.h"

#include "ledger/ledger.h"

SQLITE_EXTENSION_INIT3

struct host *host_new(sqlite3 *db) {
  struct host *host = sqlite3_malloc(sizeof *host);
  struct ledger *ledger = host ? ledger_new(db) : 0;
  if (!ledger) {
    sqlite3_free(host);
    return 0;
  }
  *host = (struct host){1, db, ledger, 0};
  return host;
}

struct host *host_retain(struct host *host) {
  if (host) host->references++;
  return host;
}

void host_release(struct host *host) {
  if (!host || --host->references > 0) return;
  ledger_free(host->ledger);
  sqlite3_free(host);
}

void host_release_pointer(void *host) {
  host_release(host);
}
