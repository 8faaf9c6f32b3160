/* papers.h: the results of the papers as SQL functions of public parameters. Besides scalars, these
** are aggregates over rows that describe Markov kernels, steps of an iteration or diffusions, and a
** table-valued function for the amplification theorem. */
#ifndef DIFFUSE_PAPERS_PAPERS_H
#define DIFFUSE_PAPERS_PAPERS_H

#include <sqlite3ext.h>
#include <stddef.h>

#include "base/sql_functions.h"

/* Register all scalars and aggregates of the room, and its table-valued function dp_amplify. These
** functions return an SQLite result code. */
int papers_register(struct pure *pure);
int amplify_register(sqlite3 *db);

int kernels_register(struct pure *pure); /* the dp_kernel_... aggregates */

/* The descriptor of an aggregate, which is the beginning of its user data. Its state has `size`
** bytes, which are 0 at first, and begins with an int `failed`: 1 after an error has been reported,
** and no further row is added then. add() returns 0 after an error. xFinal runs once, even after an
** error; without a row there is no state, and the result is NULL. */
struct row_aggregate {
  const char *name;
  int least, most; /* numbers of arguments */
  size_t size;
  int (*add)(sqlite3_context *context, void *state, int count, sqlite3_value **arguments);
  void (*final)(sqlite3_context *context);
};
int aggregate_register(struct pure *pure, const struct row_aggregate *aggregate);

/* Reports that memory ran out, and returns 0. */
int function_memory(sqlite3_context *context);

#endif
