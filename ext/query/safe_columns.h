/*
** safe_columns.h: whether the columns of a table can be read on the host's connection without an
** error or a gap that depends on a row.
*/
#ifndef DIFFUSE_QUERY_SAFE_COLUMNS_H
#define DIFFUSE_QUERY_SAFE_COLUMNS_H

#include "query/policy_tables.h"

/*
** `used`, by column of the first table of the route: what is read beside units and links. Refuses
** where an authorizer of the host blanks a column, and generated columns that are computed by what
** may raise an error or by an application's function. 
*/
int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error);

#endif
