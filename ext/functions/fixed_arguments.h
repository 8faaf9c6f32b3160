/*
** fixed_arguments.h: the arguments of an aggregate that must be the same on every row: its
** parameters are those of the first row.
*/
#ifndef DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H
#define DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H

#include <sqlite3ext.h>

#include "release/kinds.h"

struct fixed_arguments {
  sqlite3_value *values[MAX_ARGUMENTS]; /* of the first row; null where rows may differ */
  unsigned checked;                     /* rows that have been compared, up to 1024 */
};

/*
** Keeps the arguments of the first row, but for those whose bit is set in `of_row`. 0: out of
** memory.
*/
int fixed_arguments_keep(struct fixed_arguments *constants, int argc, sqlite3_value **argv,
                         unsigned of_row);

/* Whether another row has the same. */
int fixed_arguments_same(const struct fixed_arguments *constants, int argc, sqlite3_value **argv);

/*
** After a comparison: how many rows may go by unchecked until the next (the first 1024 are all
** compared).
*/
unsigned fixed_arguments_rest(struct fixed_arguments *constants);

void fixed_arguments_free(struct fixed_arguments *constants);

#endif
