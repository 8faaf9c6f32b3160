/*
** shard_rows.h: turns rows into the state of a shard, and states into the rows of a merge.
**
** A state holds the sum of every unit of the shard in every cell, before it is bounded. The merge
** adds up these sums by unit and then bounds them, so the result does not depend on which shard has
** a row. If rows are protected, or the caller asserts that units are whole, a state holds bounded
** totals.
*/
#ifndef DIFFUSE_QUERY_SHARD_ROWS_H
#define DIFFUSE_QUERY_SHARD_ROWS_H

#include "query/row_reader.h"
#include "sums/shard_state.h"

/*
** Start the rows of a finished request, for a shard or for a merge. They fill `description`, which
** must outlive the rows, like the request.
*/
int shard_rows_start_shard(struct rows *rows, struct publication *description,
                           const struct request *request, struct error *error);
int shard_rows_start_merge(struct rows *rows, struct publication *description,
                           const struct request *request, struct error *error);

/*
** Writes the sums of the rows. The caller owns writer->bytes.
*/
int shard_rows_write(struct rows *rows, const char *parameters, struct shard_state_writer *writer,
                     struct error *error);

/*
** Adds a state that has the same parameters as the rows.
*/
int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error);

#endif
