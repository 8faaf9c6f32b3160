/*
** scan.h: reads the rows of a dp_release(), on as many threads as PRAGMA threads allows.
*/
#ifndef DIFFUSE_QUERY_SCAN_H
#define DIFFUSE_QUERY_SCAN_H

#include "query/owner_query.h"

/*
** Collects the rows of a query, which `statement` runs on the host's connection. If PRAGMA threads
** is n and the query is a loop over one table of the main database (scan.c), n more connections
** read on n more threads. The sums are the same. After an error the charge stays.
*/
int scan_rows(struct collector *host, const struct publication *publication,
              const struct query *query, sqlite3_stmt *statement, struct collection *collection,
              struct error *error);

#endif
