/*
** host.h: what the extension keeps for one host connection, shared by all its functions and tables.
*/
#ifndef DIFFUSE_FUNCTIONS_HOST_H
#define DIFFUSE_FUNCTIONS_HOST_H

#include <sqlite3ext.h>

#include "query/owner_query.h"
#include "release/session.h"

struct host {
  int references;             /* functions, tables and running statements */
  int complete;               /* all functions and tables are registered */
  struct host *next;          /* in the list of hosts of this process */
  struct collector collector; /* of the connection that loaded the extension */
  struct session session;     /* its ledger is opened by the first function that needs it */
};

/* A new host with one reference, or null when out of memory. */
struct host *host_new(sqlite3 *db);

/* Whether a connection has all functions and tables already. */
int host_is_complete(sqlite3 *db);

/* Counted references: the last release closes the ledger. Both accept null. */
struct host *host_retain(struct host *host);
void host_release(struct host *host);

/* host_release() with the type of an xDestroy. */
void host_release_pointer(void *host);

#endif
