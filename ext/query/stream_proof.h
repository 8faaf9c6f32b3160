/*
** stream_proof.h: whether a question gives the same where it is evaluated once, over the rows of
** all units one after the other, as where it is evaluated for each unit by itself.
*/
#ifndef DIFFUSE_QUERY_STREAM_PROOF_H
#define DIFFUSE_QUERY_STREAM_PROOF_H

#include "query/allowed_functions.h"

/*
** Whether the program of a question on its evaluator is a loop over `tables` virtual tables, each
** once and one inside the other, that computes every result from the rows it stands on, cannot
** raise an error, and keeps nothing from one row to the next. *length: instructions of the program.
** Which table is outermost is not said.
*/
int stream_prove(sqlite3 *db, const char *sql, const struct allowed_functions *functions,
                 int tables, int *length);

#endif
