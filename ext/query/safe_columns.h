/*
** safe_columns.h: checks that the host's connection can read the columns of a table. This means
** that no row can cause an error and that no authorizer replaces the values with NULL.
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

#endif
