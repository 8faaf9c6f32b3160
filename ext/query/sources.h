/*
** sources.h: finds out from a statement alone where the arguments of an aggregate come from.
**
** An aggregate is charged at its first row, and takes its parameters from that row. A parameter
** that is a column may differ in later rows, which are read after the charge. The program of the
** statement shows such a parameter before the charge. If the program does not show with certainty
** where an argument comes from, the aggregate compares the argument row by row (fixed_arguments.h).
*/
#ifndef DIFFUSE_QUERY_SOURCES_H
#define DIFFUSE_QUERY_SOURCES_H

#include <sqlite3ext.h>

/* Sets of arguments, as masks of the bits 1 << place. */
struct sources {
  unsigned rows;  /* the arguments that are computed from a row */
  unsigned texts; /* the arguments that are a constant text of the statement */
};

/*
** Examines the programs of all running statements for calls of a function with this number of
** arguments. With GROUP BY, each group may have its own parameters, so an argument then counts as
** computed from a row only if it is a bare column, is not a term of the GROUP BY, and is not in
** `free_in_groups`.
*/
struct sources sources_of(sqlite3 *db, const char *function, int arguments,
                          unsigned free_in_groups);

#endif
