/*
** in_operators.h: whether the text of a query may contain an operator IN of which a virtual table
** would not learn (evaluator_tables.c).
*/
#ifndef DIFFUSE_QUERY_IN_OPERATORS_H
#define DIFFUSE_QUERY_IN_OPERATORS_H

/*
** Returns 0 only if the text has no operator IN with a row value on its left, such as
** (a, b) IN (SELECT ...).
*/
int has_row_value_in(const char *sql);

/*
** Returns 0 only if SQLite of any version makes no operator IN of the text: neither IN itself, nor
** OR and EXISTS, which some versions rewrite as IN.
*/
int has_in(const char *sql);

#endif
