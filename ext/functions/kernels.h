/*
** kernels.h: registration functions that papers.c calls. They register aggregates over rows that
** describe Markov kernels, steps of an iteration or diffusions, and a table-valued function for the
** amplification theorem.
*/
#ifndef DIFFUSE_FUNCTIONS_KERNELS_H
#define DIFFUSE_FUNCTIONS_KERNELS_H

#include <sqlite3ext.h>

/* Registers the dp_kernel_... aggregates. Returns an SQLite code. */
int kernels_register(sqlite3 *db);

/* Registers the dp_iteration_... aggregates over steps. Returns an SQLite code. */
int paths_register(sqlite3 *db);

/* Registers dp_diffusion_rate. Returns an SQLite code. */
int diffusions_register(sqlite3 *db);

/* Registers the table-valued function dp_amplify. Returns an SQLite code. */
int amplify_register(sqlite3 *db);

#endif
