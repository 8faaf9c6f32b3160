/* own_connection.h: opens the extension's own connections: to the ledger, in memory, and to the
** database of the host. No other file opens one. The settings of such a connection are always the
** same, whatever the defaults of this build of SQLite are and whatever an extension has set that is
** loaded for every connection. (A function of SQLite that such an extension has replaced stays
** replaced: query/question_text.c.) */
#ifndef DIFFUSE_BASE_OWN_CONNECTION_H
#define DIFFUSE_BASE_OWN_CONNECTION_H

#include <sqlite3ext.h>

#include "base/error.h"

/* Does what sqlite3_open_v2() does, and sets all settings of the connection. Reads no file: what
** SQLite can only set after it has read the schema is up to the caller. A database in memory is in
** UTF-8, has a journal, and has no limit of its size. Returns an SQLite result code. The caller
** closes *db also after a failure. */
int own_connection_open(sqlite3 **db, const char *path, int flags, const char *vfs);

/* Opens the file of `main` once more, with the same VFS and URI parameters. `flags` are those of
** sqlite3_open_v2() for access and mutexes. Sets *opened to the connection. Returns 1, or 0 with
** the error set and *opened null. The limits of the connection are those of SQLite, not those of
** `db`, and it trusts the schema if `db` does. */
int own_connection_again(sqlite3 **opened, sqlite3 *db, int flags, struct error *error);

#endif
