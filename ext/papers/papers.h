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

/* Registers the dp_kernel_... aggregates. */
int kernels_register(sqlite3 *db);

/* Registers the dp_iteration_... aggregates over steps. */
int paths_register(sqlite3 *db);

/* Registers dp_diffusion_rate. */
int diffusions_register(sqlite3 *db);

/* Registers the table-valued function dp_amplify. */
int amplify_register(sqlite3 *db);

#endif
