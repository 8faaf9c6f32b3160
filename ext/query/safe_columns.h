/*
** safe_columns.h: checks that a connection can read the columns of a table. This means that no row
** can cause an error and that no authorizer replaces the values with NULL.
*/
#ifndef DIFFUSE_QUERY_SAFE_COLUMNS_H
#define DIFFUSE_QUERY_SAFE_COLUMNS_H

#include "query/policy_tables.h"

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
