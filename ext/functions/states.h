/*
** states.h: rows to the state of a shard, and states to the rows of a merge.
**
** A state holds what every unit of the shard has in every cell, before it is bounded: the merge
** adds up by unit and bounds then, so it matters to nobody which shard a row is in. Or, where rows
** are protected or the caller knows that units are whole, bounded totals.
*/
#ifndef DIFFUSE_FUNCTIONS_STATES_H
#define DIFFUSE_FUNCTIONS_STATES_H

#include "functions/rows.h"
#include "release/state.h"

/*
** Starts rows of a finished request: those of a shard, or what states are added to. `description`
** holds what they are, and must outlive them like the request. Returns null, or one sentence to be
** freed.
*/
char *states_start_shard(struct rows *rows, struct publication *description,
                         const struct request *request);
char *states_start_merge(struct rows *rows, struct publication *description,
                         const struct request *request);

/*
** Writes what the rows add up to. Returns null, or one sentence to be freed; writer->bytes are the
** caller's.
*/
char *states_write(struct rows *rows, const char *parameters, struct state_writer *writer);

/*
** Adds a state whose parameters are those of the rows. Returns null, or one sentence to be freed.
*/
char *states_add(struct rows *rows, struct state *state);

#endif
