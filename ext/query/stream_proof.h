/*
** stream_proof.h: whether one evaluation of a question over the rows of all units, one after the
** other, gives the same results as a separate evaluation for each unit.
*/
#ifndef DIFFUSE_QUERY_STREAM_PROOF_H
#define DIFFUSE_QUERY_STREAM_PROOF_H

#include "query/allowed_functions.h"

/*
** Whether the program of a question on its evaluator is a nest of loops over `tables` virtual
** tables, each used once. The loops must compute every result from their current rows, raise no
** error, and keep nothing from one row to the next. Sets *length to the number of instructions. The
** proof does not determine which table is the outermost.
*/
int stream_prove(sqlite3 *db, const char *sql, const struct allowed_functions *functions,
                 int tables, int *length);

#endif
