/*
** host.h: the state of the extension on one host connection, shared by its functions and tables.
*/
#ifndef DIFFUSE_FUNCTIONS_HOST_H
#define DIFFUSE_FUNCTIONS_HOST_H

#include <sqlite3ext.h>

#include "query/owner_query.h"
#include "release/session.h"

struct host {
  int references;             /* functions, tables and running statements */
  int complete;               /* all functions and tables are registered */
  struct host *next;          /* in the list of all hosts of this process */
  struct collector collector; /* of the connection that loaded the extension */
  struct session session;     /* the first function that needs the ledger opens it */
};

/* Makes a host with one reference. Returns null when out of memory. */
struct host *host_new(sqlite3 *db);

/* Whether all functions and tables are registered on a connection. */
int host_is_complete(sqlite3 *db);

/* Count references. host_release() closes the ledger with the last one. Both accept null. */
struct host *host_retain(struct host *host);
void host_release(struct host *host);

/* host_release() with the signature of an xDestroy callback. */
void host_release_pointer(void *host);

#endif
