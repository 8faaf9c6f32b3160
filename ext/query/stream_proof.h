/*
** stream_proof.h: proves that one evaluation of a question over the rows of all units gives the
** same results as a separate evaluation for each unit.
*/
#ifndef DIFFUSE_QUERY_STREAM_PROOF_H
#define DIFFUSE_QUERY_STREAM_PROOF_H

#include "query/allowed_functions.h"

struct stream_facts {
  int length;       /* the number of instructions */
  int reads_rowids; /* the question reads a rowid under the name rowid, _rowid_ or oid */
};

/*
** Returns 1 if the program of a question on its evaluator is a nest of loops over `tables` virtual
** tables, each used once. The loops must compute every result from their current rows, raise no
** error, make no value that is longer than the values of the rows, and keep nothing from one row to
** the next. Sets *facts. The proof does not determine the table of the outermost loop;
** evaluator_run_stream() checks this table.
*/
int stream_prove(sqlite3 *db, const char *sql, const struct allowed_functions *functions,
                 int tables, struct stream_facts *facts);

#endif
