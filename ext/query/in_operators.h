/*
** in_operators.h: whether the text of a query may contain an operator IN of which a virtual table
** would not learn (evaluator_tables.c).
*/
#ifndef DIFFUSE_QUERY_IN_OPERATORS_H
#define DIFFUSE_QUERY_IN_OPERATORS_H

#include "base/sql_functions.h"

/*
** Return 0 only if the text, or all running statements of a connection, have no operator IN that
** SQLite reports to virtual tables as an equality and of which sqlite3_vtab_in() does not tell.
*/
int has_hidden_in(const char *sql);
int runs_hidden_in(sqlite3 *db);

#endif
