/*
** sources.h: where the arguments of an aggregate come from, as far as its statement alone says it.
**
** An aggregate is charged at its first row, and its parameters are those of that row. A parameter
** that is a column differs from row to row, which later rows show, after the charge. The program of
** the statement shows it before. Only what is certain counts: an argument of which the program says
** nothing is compared row by row as before (fixed_arguments.h).
*/
#ifndef DIFFUSE_QUERY_SOURCES_H
#define DIFFUSE_QUERY_SOURCES_H

#include <sqlite3ext.h>

/* Arguments, as bits 1 << place. */
struct sources {
  unsigned rows;  /* computed from a row */
  unsigned texts; /* one text, written into the statement */
};

/*
** What the programs of the statements that are running say of the calls of a function with so many
** arguments. Groups may have parameters of their own: where there is a GROUP BY, only bare columns
** that are not among its terms count as rows, and those of `free_in_groups` never.
*/
struct sources sources_of(sqlite3 *db, const char *function, int arguments,
                          unsigned free_in_groups);

#endif
