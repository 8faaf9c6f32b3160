/*
** private_connection.h: further connections of the extension to the database file of a connection.
*/
#ifndef DIFFUSE_QUERY_PRIVATE_CONNECTION_H
#define DIFFUSE_QUERY_PRIVATE_CONNECTION_H

#include "base/error.h"
#include "query/collector.h"

/*
** Opens the file of `main` once more, with the same VFS and URI parameters. `flags` are those of
** sqlite3_open_v2() for access and mutexes. Sets *opened to the connection. Returns 1, or 0 with
** the error set and *opened null. The limits of the connection are those of SQLite, not those of
** `db`, and it trusts the schema if `db` does.
*/
int private_connection_open(sqlite3 **opened, sqlite3 *db, int flags, struct error *error);

/*
** Registers dp_collect() on a connection, and returns its collector, which then owns the
** connection. Closes the connection and returns null when out of memory. private_collector_close()
** accepts null.
*/
struct collector *private_collector_new(sqlite3 *db);
void private_collector_close(struct collector *collector);

#endif
