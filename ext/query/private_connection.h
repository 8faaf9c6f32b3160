/* private_connection.h: the extension's own connections for questions: to the file of the host's
** connection, and in memory. */
#ifndef DIFFUSE_QUERY_PRIVATE_CONNECTION_H
#define DIFFUSE_QUERY_PRIVATE_CONNECTION_H

#include <sqlite3ext.h>

#include "base/error.h"

/* Opens the file of `main` once more, with the same VFS and URI parameters. `flags` are those of
** sqlite3_open_v2() for access and mutexes. Sets *opened to the connection. Returns 1, or 0 with
** the error set and *opened null. The limits of the connection are those of SQLite, not those of
** `db`, and it trusts the schema if `db` does. */
int private_connection_open(sqlite3 **opened, sqlite3 *db, int flags, struct error *error);

struct memory_budget {
  double used, most; /* bytes */
  int is_exceeded;
};

/* Adds bytes to those that are used. Returns 0 if this exceeds the budget. */
int memory_budget_take(struct memory_budget *budget, double bytes);

/* A connection in memory with a file system of its own, which no other connection can use. It has
** only temporary files, which it keeps in memory within a budget, gives zeros instead of random
** bytes, and shows one fixed time: the host's time when the connection was opened. */
struct private_memory {
  sqlite3_vfs vfs;
  char name[40];
  struct memory_budget budget;
  sqlite3_int64 moment; /* Julian day in milliseconds */
};

/* Opens the connection. *memory must keep its address until the connection is closed. Returns 1, or
** 0 with the error set. The caller closes *db in both cases. */
int private_memory_open(struct private_memory *memory, sqlite3 **db, struct error *error);

#endif
