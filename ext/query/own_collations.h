/* own_collations.h: whether the collations of a connection are SQLite's own. */
#ifndef DIFFUSE_QUERY_OWN_COLLATIONS_H
#define DIFFUSE_QUERY_OWN_COLLATIONS_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Checks that the application has not replaced BINARY, NOCASE or RTRIM. If it has, the connection
** and a question's evaluator would not agree which names of units are equal, and one person could
** count twice; and a comparison in a question would mean something else than in a SELECT. Returns
** 1, or 0 with the error set.
*/
int own_collations_check(sqlite3 *db, struct error *error);

#endif
