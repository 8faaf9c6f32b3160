/*
** merged_shards.h: which states and which shards a merge has.
**
** A state may reach a merge twice, because a file is copied or a message is sent again. The same
** bytes are taken once. Two different states of one shard, of which a task makes the second when it
** is tried again, are an error: each has the rows of the shard, so the sums would count them twice,
** and with whole_units the bound on a unit would not hold.
*/
#ifndef DIFFUSE_FUNCTIONS_MERGED_SHARDS_H
#define DIFFUSE_FUNCTIONS_MERGED_SHARDS_H

#include "base/error.h"
#include "base/json.h"
#include "sums/shard_state.h"

/* A hash table of states. {0} is empty. */
struct merged_shards {
  struct merged_state *places;
  size_t room, count; /* the room is a power of two, or 0 */
};

void merged_shards_close(struct merged_shards *shards);

/*
** Notes a state. Sets *is_new to 0 if the same bytes were noted before. Returns 1, or 0 with the
** error set.
*/
int merged_shards_add(struct merged_shards *shards, const struct shard_state *state, int *is_new,
                      struct error *error);

/*
** Checks that no shard has two states, and that the shards are those that the option `shards` of
** dp_merge() names: a number of shards, or a JSON array of their names; null: any shards. Returns
** 1, or 0 with the error set.
*/
int merged_shards_check(const struct merged_shards *shards, const char *wanted, struct json *json);

#endif
