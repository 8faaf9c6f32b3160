/*
** private_memory.h: a connection in memory with a file system of its own. This file system has only
** temporary files, which it keeps in memory within a budget. It gives zeros instead of random
** bytes, and shows one fixed time: the host's time when the connection was opened. No other
** connection can use this file system.
*/
#ifndef DIFFUSE_QUERY_PRIVATE_MEMORY_H
#define DIFFUSE_QUERY_PRIVATE_MEMORY_H

#include <sqlite3ext.h>

#include "base/error.h"

struct memory_budget {
  double used, most; /* bytes */
  int is_exceeded;
};

/* Adds bytes to those that are used. Returns 0 if this exceeds the budget. */
int memory_budget_take(struct memory_budget *budget, double bytes);

struct private_memory {
  sqlite3_vfs vfs;
  char name[40];
  struct memory_budget budget;
  sqlite3_int64 moment; /* the time that the connection sees: Julian day in milliseconds */
};

/*
** Opens the connection. *memory must keep its address until the connection is closed. Returns 1, or
** 0 with the error set. The caller closes *db in both cases.
*/
int private_memory_open(struct private_memory *memory, sqlite3 **db, struct error *error);

#endif
