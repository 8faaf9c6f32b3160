/*
** group_keys.h: the keys of a grouped release, and which cell a row's key stands for.
**
** A key is the text that it is shown as: keys that look alike are one group. Public keys are all
** there from the start, and rows with other keys have no cell; private ones are collected from the
** rows.
*/
#ifndef DIFFUSE_SUMS_GROUP_KEYS_H
#define DIFFUSE_SUMS_GROUP_KEYS_H

#include "sums/identity.h"

struct group_keys;

#define CELL_NONE   (-1)
#define CELL_NEW    (-2) /* not seen yet: ask group_keys_name() */
#define CELL_FAILED (-3) /* out of memory */

/*
** Starts with these public keys, all different, cell i for keys[i]; or with none, collecting. Null:
** out of memory.
*/
struct group_keys *group_keys_open(const struct secret *secret, char *const *keys, int count,
                                   int collecting);
void group_keys_close(struct group_keys *cells);

/* The cell of a key by its identity: one that has been named, or CELL_NEW. */
int group_keys_find(const struct group_keys *cells, struct identity key);

/*
** The cell of a key by its text; the identity is remembered where there is one. CELL_NONE for a key
** that is not public, CELL_FAILED without memory.
*/
int group_keys_name(struct group_keys *cells, struct identity key, const char *text);

int group_keys_count(const struct group_keys *cells);
const char *group_keys_text(const struct group_keys *cells, int cell);

/*
** A cell that some unit has kept. Private keys that no unit has kept are no coordinates: each noisy
** count more would be a chance more for a unit's own key to be shown.
*/
void group_keys_keep(struct group_keys *cells, int cell);
void group_keys_forget(struct group_keys *cells); /* none is kept */
int group_keys_is_kept(const struct group_keys *cells, int cell);

/* 64 bits that depend on the text and the secret alone, not on the order of rows. */
uint64_t group_keys_hash(const struct group_keys *cells, int cell);

#endif
