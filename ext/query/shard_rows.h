/*
** shard_rows.h: rows to the state of a shard, and states to the rows of a merge.
**
** A state holds what every unit of the shard has in every cell, before it is bounded: the merge
** adds up by unit and bounds then, so it matters to nobody which shard a row is in. Or, where rows
** are protected or the caller knows that units are whole, bounded totals.
*/
#ifndef DIFFUSE_QUERY_SHARD_ROWS_H
#define DIFFUSE_QUERY_SHARD_ROWS_H

#include "query/row_reader.h"
#include "sums/shard_state.h"

/*
** Starts rows of a finished request: those of a shard, or what states are added to. `description`
** holds what they are, and must outlive them like the request. 
*/
int shard_rows_start_shard(struct rows *rows, struct publication *description,
                           const struct request *request, struct error *error);
int shard_rows_start_merge(struct rows *rows, struct publication *description,
                           const struct request *request, struct error *error);

/*
** Writes what the rows add up to. writer->bytes are the
** caller's.
*/
int shard_rows_write(struct rows *rows, const char *parameters, struct shard_state_writer *writer,
                     struct error *error);

/*
** Adds a state whose parameters are those of the rows. 
*/
int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error);

#endif
