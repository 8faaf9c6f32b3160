/*
** host_checks.h: whether the host's connection reads for a question as a connection of SQLite alone
** would: with SQLite's own functions and collations, columns that no authorizer replaces with NULL,
** and generated columns that no row can make fail. A question is refused otherwise.
*/
#ifndef DIFFUSE_QUERY_HOST_CHECKS_H
#define DIFFUSE_QUERY_HOST_CHECKS_H

#include "query/allowed_functions.h"
#include "query/policy_tables.h"

/*
** Checks that the connection has SQLite's own functions where the question calls them. The question
** would otherwise give something else than the same SELECT. Returns 1, or 0 with the error set.
*/
int own_functions_check(sqlite3 *db, const struct allowed_functions *called, struct error *error);

/*
** Checks that the application has not replaced BINARY, NOCASE or RTRIM. If it has, the connection
** and a question's evaluator would not agree which names of units are equal, and one person could
** count twice; and a comparison in a question would mean something else than in a SELECT. Returns
** 1, or 0 with the error set.
*/
int own_collations_check(sqlite3 *db, struct error *error);

/*
** Checks all columns of the route's tables that the question reads. `used` marks these columns for
** the first table. The unit and the links are always checked. Refuses a column whose values an
** authorizer of the host replaces with NULL. Also refuses a generated column whose computation may
** raise an error or calls a function of an application. Returns 1, or 0 with the error set.
*/
int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error);

/*
** Returns whether a SELECT of one column gives the column. An authorizer may have replaced the
** column with NULL: SQLite then compiles the SELECT as it compiles `nothing`, the same SELECT of a
** NULL. Returns 0 also if one of the statements does not compile.
*/
int column_is_shown(sqlite3 *db, const char *select, const char *nothing);

#endif
