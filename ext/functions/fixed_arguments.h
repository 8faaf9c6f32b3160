/*
** fixed_arguments.h: the arguments of dp_merge() that must be the same for every state.
*/
#ifndef DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H
#define DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H

#include <sqlite3ext.h>

#include "release/kinds.h"

struct fixed_arguments {
  sqlite3_value *values[MAX_ARGUMENTS]; /* copies from the first row; null for other arguments */
};

/*
** Copies the arguments of the first row, except the arguments whose bit is set in `of_row`. Returns
** 0 when out of memory.
*/
int fixed_arguments_keep(struct fixed_arguments *constants, int argc, sqlite3_value **argv,
                         unsigned of_row);

/* Returns whether a later row has the same fixed arguments as the first row. */
int fixed_arguments_same(const struct fixed_arguments *constants, int argc, sqlite3_value **argv);

void fixed_arguments_free(struct fixed_arguments *constants);

#endif
