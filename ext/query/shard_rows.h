/*
** shard_rows.h: writes rows as the state of a shard, and adds states to the rows of a merge.
**
** A state holds the sum of every unit of the shard in every cell. These sums are not bounded yet.
** The merge adds up the sums of each unit over all shards and then bounds them. The result
** therefore does not depend on the shard that holds a row. If all rows of a unit are in one shard,
** which the caller asserts, and which is so if each row is a unit, a state holds bounded totals
** instead.
*/
#ifndef DIFFUSE_QUERY_SHARD_ROWS_H
#define DIFFUSE_QUERY_SHARD_ROWS_H

#include "query/row_reader.h"
#include "sums/shard_state.h"

/*
** Starts the rows of a request after request_finish(), for a shard or for a merge. A shard's rows
** have units (`by_unit`), and so do those of a merge, unless dp_partial() has bounded the sums of
** each unit already (whole_units). Fills `description`, which must outlive the rows, as must the
** request. Returns 1, or 0 with the error set.
*/
int shard_rows_start(struct rows *rows, struct publication *description,
                     const struct request *request, int by_unit, struct error *error);

/*
** Writes the sums of the rows as a state. The caller owns writer->bytes. Returns 1, or 0 with the
** error set.
*/
int shard_rows_write(struct rows *rows, const struct shard_label *label,
                     struct shard_state_writer *writer, struct error *error);

/*
** Adds a state to the rows. The state must have the same parameters as the rows. Returns 1, or 0
** with the error set.
*/
int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error);

#endif
