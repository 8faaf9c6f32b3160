/*
** constants.h: the arguments of an aggregate that must be the same on every row: its parameters are
** those of the first row.
*/
#ifndef DIFFUSE_FUNCTIONS_CONSTANTS_H
#define DIFFUSE_FUNCTIONS_CONSTANTS_H

#include "functions/aggregate.h"

struct constants {
  sqlite3_value *values[MAX_ARGUMENTS]; /* of the first row; null where rows may differ */
  unsigned checked;                     /* rows that have been compared, up to 1024 */
};

/*
** Keeps the arguments of the first row, but for those whose bit is set in `of_row`. 0: out of
** memory.
*/
int constants_keep(struct constants *constants, int argc, sqlite3_value **argv, unsigned of_row);

/* Whether another row has the same. */
int constants_same(const struct constants *constants, int argc, sqlite3_value **argv);

/*
** After a comparison: how many rows may go by unchecked until the next (the first 1024 are all
** compared).
*/
unsigned constants_rest(struct constants *constants);

void constants_free(struct constants *constants);

#endif
