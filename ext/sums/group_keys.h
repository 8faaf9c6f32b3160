/*
** group_keys.h: the keys of a grouped release, and the cell of each key.
**
** Keys are compared by the text that is published, so keys with the same text are one group. All
** public keys are known from the start, and rows with other keys have no cell. Private keys are
** collected from the rows.
*/
#ifndef DIFFUSE_SUMS_GROUP_KEYS_H
#define DIFFUSE_SUMS_GROUP_KEYS_H

#include "sums/identity.h"

struct group_keys;

#define CELL_NONE   (-1)
#define CELL_NEW    (-2) /* not seen yet: call group_keys_name() */
#define CELL_FAILED (-3) /* out of memory */

/*
** Starts with these public keys, which must all be different; keys[i] gets cell i. Without keys,
** starts to collect private keys. Returns null when out of memory.
*/
struct group_keys *group_keys_open(const struct secret *secret, char *const *keys, int count,
                                   int collecting);
void group_keys_close(struct group_keys *cells);

/* The cell of a key by its identity, or CELL_NEW if group_keys_name() has not seen it. */
int group_keys_find(const struct group_keys *cells, struct identity key);

/*
** Returns the cell of a key by its text, and remembers the identity if there is a cell. Returns
** CELL_NONE for a key that is not public, CELL_FAILED when out of memory.
*/
int group_keys_name(struct group_keys *cells, struct identity key, const char *text);

int group_keys_count(const struct group_keys *cells);
const char *group_keys_text(const struct group_keys *cells, int cell);

/*
** Marks a cell that some unit has kept. A private key that no unit has kept gets no coordinate,
** because each additional noisy count would be another chance to publish a key that only one unit
** has.
*/
void group_keys_keep(struct group_keys *cells, int cell);
void group_keys_forget(struct group_keys *cells); /* clears all marks */
int group_keys_is_kept(const struct group_keys *cells, int cell);

/* 64 bits that depend only on the text and the secret, not on the order of rows. */
uint64_t group_keys_hash(const struct group_keys *cells, int cell);

#endif
