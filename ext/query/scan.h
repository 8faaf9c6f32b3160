/*
** scan.h: reads the rows of a dp_release(), on as many threads as PRAGMA threads allows.
*/
#ifndef DIFFUSE_QUERY_SCAN_H
#define DIFFUSE_QUERY_SCAN_H

#include "query/owner_query.h"

/*
** Collects the rows of a query. `statement` runs the query on the host's connection. If PRAGMA
** threads is n and the query is a loop over one table of the main database (scan.c), n further
** connections read on n further threads. The sums are the same in both cases. Returns 1, or 0 with
** the error set; the charge then stays.
*/
int scan_rows(struct collector *host, const struct publication *publication,
              const struct query *query, sqlite3_stmt *statement, struct collection *collection,
              struct error *error);

#endif
