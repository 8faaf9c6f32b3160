/*
** sources.h: finds out from a statement alone where the arguments of an aggregate come from.
**
** An aggregate is charged at its first row, and takes its parameters from that row. A parameter
** that is a column may differ in later rows, which are read after the charge. The program of the
** statement shows such a parameter before the charge. Only certain sources count: if the program
** does not determine an argument, the aggregate compares it row by row (fixed_arguments.h).
*/
#ifndef DIFFUSE_QUERY_SOURCES_H
#define DIFFUSE_QUERY_SOURCES_H

#include <sqlite3ext.h>

/* Arguments as bit masks of 1 << place. */
struct sources {
  unsigned rows;  /* computed from a row */
  unsigned texts; /* computed from the columns of a row */
};

/*
** Examines the programs of all running statements for calls of a function with this number of
** arguments. Each group may have its own parameters. In a GROUP BY, an argument therefore counts as
** computed from a row only if it is a bare column that is not a term of the GROUP BY, and never if
** it is in `free_in_groups`.
*/
struct sources sources_of(sqlite3 *db, const char *function, int arguments,
                          unsigned free_in_groups);

#endif
