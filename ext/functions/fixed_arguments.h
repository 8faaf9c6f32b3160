/*
** fixed_arguments.h: the arguments of an aggregate that must be the same on every row. The
** aggregate takes its parameters from the first row.
*/
#ifndef DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H
#define DIFFUSE_FUNCTIONS_FIXED_ARGUMENTS_H

#include <sqlite3ext.h>

#include "release/kinds.h"

struct fixed_arguments {
  sqlite3_value *values[MAX_ARGUMENTS]; /* copies from the first row; null where rows may differ */
  unsigned checked;                     /* rows compared so far, up to 1024 */
};

/*
** Copies the arguments of the first row, except those whose bit is set in `of_row`. Returns 0 when
** out of memory.
*/
int fixed_arguments_keep(struct fixed_arguments *constants, int argc, sqlite3_value **argv,
                         unsigned of_row);

/* Whether a later row has the same fixed arguments as the first row. */
int fixed_arguments_same(const struct fixed_arguments *constants, int argc, sqlite3_value **argv);

/*
** Call it after a comparison. Returns how many rows may pass unchecked before the next comparison
** (0 within the first 1024 rows).
*/
unsigned fixed_arguments_rest(struct fixed_arguments *constants);

void fixed_arguments_free(struct fixed_arguments *constants);

#endif
