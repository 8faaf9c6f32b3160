/* open.h: where the ledger of a database is. */
#ifndef DIFFUSE_LEDGER_OPEN_H
#define DIFFUSE_LEDGER_OPEN_H

#include "ledger/handle.h"

/*
** Returns the path of `name` in the database's directory. If `name` is absolute, or if the database
** has no directory, returns a copy of `name`. The caller calls sqlite3_free().
*/
char *ledger_resolve(const struct ledger *ledger, const char *name);

/*
** Returns the default path of a ledger, as a marker stores it. The path is relative to the
** database, so that both files can move together. The caller calls sqlite3_free().
*/
char *ledger_default_name(const struct ledger *ledger);

/*
** Opens the ledger at `path`, unless it is open already. Returns 0 without an error if there is no
** ledger at `path`. The function takes ownership of the string. An in-memory ledger cannot be
** opened again, so for MEMORY_PATH the function succeeds only if this ledger is open. The function
** refuses the files of the host's database, because closing such a file would drop the host's own
** locks.
*/
int ledger_use_path(struct ledger *ledger, char *path);

#endif
