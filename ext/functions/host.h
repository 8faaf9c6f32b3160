/*
** host.h: the state of the extension on one connection of the host. All functions and tables of the
** connection share this state.
*/
#ifndef DIFFUSE_FUNCTIONS_HOST_H
#define DIFFUSE_FUNCTIONS_HOST_H

#include <sqlite3ext.h>

#include "query/collector.h"
#include "release/session.h"

struct tier_guard; /* functions/tier_guard.h */

struct host {
  int references;    /* the number of functions, tables and running statements that use the host */
  int complete;      /* all functions and tables are registered */
  struct host *next; /* the next host in the list of all hosts of this process */
  struct collector collector; /* the connection that loaded the extension, and its dp_collect() */
  struct session session;     /* the first function that needs the ledger opens the ledger */
  int (*register_others)(sqlite3 *db);
  struct tier_guard *guard; /* set by dp_guard(); null: the connection is the owner's */
};

/*
** Makes a host with one reference. Returns null when out of memory. `register_others` registers the
** virtual tables that need no host.
*/
struct host *host_new(sqlite3 *db, int (*register_others)(sqlite3 *db));

/* Returns whether all functions and tables are registered on a connection. */
int host_is_complete(sqlite3 *db);

/*
** Count references. When the last reference is released, host_release() closes the ledger. Both
** functions accept null.
*/
struct host *host_retain(struct host *host);
void host_release(struct host *host);

/* Calls host_release(). This function has the signature of an xDestroy callback. */
void host_release_pointer(void *host);

#endif
