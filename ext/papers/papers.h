/*
** papers.h: the results of the papers as SQL functions of public parameters. Besides scalars, these
** are aggregates over rows that describe Markov kernels, steps of an iteration or diffusions, and a
** table-valued function for the amplification theorem.
*/
#ifndef DIFFUSE_PAPERS_PAPERS_H
#define DIFFUSE_PAPERS_PAPERS_H

#include <sqlite3ext.h>

/* Registers all functions of the room. Returns an SQLite code, as the functions below do. */
int papers_register(sqlite3 *db);

int kernels_register(sqlite3 *db); /* the dp_kernel_... aggregates */
int paths_register(sqlite3 *db);   /* the dp_iteration_... aggregates over steps */
int amplify_register(sqlite3 *db); /* the table-valued function dp_amplify */

struct row_aggregate;                                  /* row_aggregate.h */
extern const struct row_aggregate diffusion_aggregate; /* dp_diffusion_rate */

#endif
