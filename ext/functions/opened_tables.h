/*
** opened_tables.h: finds out whether a statement opens only tables that a guard allows.
**
** SQLite does not ask an authorizer about columns that NATURAL JOIN and USING compare, nor about a
** table if the statement uses no other column of this table. These functions therefore read the
** program of the statement, which opens each table by its root page and each virtual table by its
** address.
*/
#ifndef DIFFUSE_FUNCTIONS_OPENED_TABLES_H
#define DIFFUSE_FUNCTIONS_OPENED_TABLES_H

#include <sqlite3ext.h>

/*
** Returns the addresses of virtual tables in the form that EXPLAIN shows, separated by blanks. Each
** virtual table may take up to eight arguments. The caller frees the text with sqlite3_free().
** Returns null when out of memory.
*/
char *virtual_addresses(sqlite3 *db, const char *const *names, int count);

/*
** Returns the numbers of the root pages of these tables of main and of their indices, as a text
** that has a blank before and after each number. If `schema` is 1, adds the root page of
** sqlite_master. Returns null on failure.
*/
char *root_pages(sqlite3 *db, const char *const *tables, int count, int schema);

/*
** Returns whether a statement opens no tables except these: for reading, tables of main with these
** root pages and virtual tables with these addresses; and tables that SQLite makes for the
** statement itself. Returns 0 if the program of the statement cannot be read.
*/
int opens_only(sqlite3 *db, const char *sql, const char *pages, const char *addresses);

#endif
