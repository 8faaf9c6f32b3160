/* export.h: writes the facts of an audience to an SQLite file that needs no extension. */
#ifndef DIFFUSE_REPORT_EXPORT_H
#define DIFFUSE_REPORT_EXPORT_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"

/*
** Writes the tables value, tier and certificate to a new file. The new file gets the owner and the
** permissions of the database. If the database is in memory, only the creator of the new file may
** use it. Never changes a file that exists, and refuses the names of the files of the database and
** the ledger. The file gets its name when it is complete and on the disk. If writing fails, there
** is no such file; if the process is killed, a file dp_export-*.part may stay in the folder.
** Returns 1, or 0 with an error.
*/
int export_write(sqlite3 *facts, const char *file, const struct ledger *ledger,
                 struct error *error);

#endif
