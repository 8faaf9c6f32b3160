/* export.h: writes the facts of an audience to an SQLite file that needs no extension. */
#ifndef DIFFUSE_REPORT_EXPORT_H
#define DIFFUSE_REPORT_EXPORT_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Writes the tables value, tier and certificate to a new file. `model` is the file whose owner and
** permissions the new file gets; null: the file is for its creator alone. Never changes a file that
** exists, and deletes the new file if writing fails. Returns 1, or 0 with an error.
*/
int export_write(sqlite3 *facts, const char *file, const char *model, struct error *error);

#endif
