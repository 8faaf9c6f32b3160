/* quoted_names.h: names in double quotes that SQLite takes for texts. */
#ifndef DIFFUSE_QUERY_QUOTED_NAMES_H
#define DIFFUSE_QUERY_QUOTED_NAMES_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Checks that no running statement of the connection has a name in double quotes that is no column,
** which SQLite takes for a text. Returns 1, or 0 with the error set.
*/
int quoted_names_check(sqlite3 *db, struct error *error);

#endif
