/* host.c: see host.h. */
#include "functions/host.h"

SQLITE_EXTENSION_INIT3

struct host {
  int references;
  sqlite3 *db;
};

struct host *host_new(sqlite3 *db) {
  struct host *host = sqlite3_malloc(sizeof *host);
  if (host) *host = (struct host){1, db};
  return host;
}

struct host *host_retain(struct host *host) {
  if (host) host->references++;
  return host;
}

void host_release(struct host *host) {
  if (!host || --host->references > 0) return;
  sqlite3_free(host);
}
