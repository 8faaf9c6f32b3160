/*
** safe_columns.h: whether the host's connection can read the columns of a table without an error or
** a gap that depends on a row.
*/
#ifndef DIFFUSE_QUERY_SAFE_COLUMNS_H
#define DIFFUSE_QUERY_SAFE_COLUMNS_H

#include "query/policy_tables.h"

/*
** `used` marks the columns of the first table of the route that the question reads, besides units
** and links. The check refuses a column whose values an authorizer of the host replaces with NULL.
** It also refuses generated columns whose computation may raise an error or calls a function of an
** application.
*/
int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error);

#endif
