/* group_keys.h: the keys of a grouped release, and the cell of each key.
**
** The code compares keys by the text that is published, so keys with the same text are one group.
** Public keys are parameters of the release, and rows with other keys have no cell. Private keys
** are collected from the rows. */
#ifndef DIFFUSE_SUMS_GROUP_KEYS_H
#define DIFFUSE_SUMS_GROUP_KEYS_H

#include "sums/identity.h"

struct group_keys;

#define CELL_NONE   (-1)
#define CELL_NEW    (-2) /* group_keys_name() has not seen this key yet */
#define CELL_FAILED (-3) /* out of memory */

/* Makes a table of keys: keys[i], of `count` different public keys, gets cell i. If `collecting` is
** true, the table also gives cells to new (private) keys. Returns null if memory runs out. */
struct group_keys *group_keys_open(const struct secret *secret, char *const *keys, int count,
                                   int collecting);
void group_keys_close(struct group_keys *cells);

/* The cells of the integers 0 ... GROUP_KEYS_SMALL - 1, as long as the table lives. */
#define GROUP_KEYS_SMALL 4096
const int *group_keys_small(const struct group_keys *cells);

/* Returns the cell of the key with this identity, or CELL_NEW if group_keys_name() has not stored
** this identity. For a small integer that is not a public key, the result can be CELL_NONE. */
int group_keys_find(const struct group_keys *cells, struct identity key);

/* Short texts are found without a hash if they were seen shortly before. group_keys_recall()
** returns the cell of a text that group_keys_note() has stored, or CELL_NEW. The cell depends on
** the bytes alone. */
int group_keys_recall(const struct group_keys *cells, const void *bytes, size_t size);
void group_keys_note(struct group_keys *cells, const void *bytes, size_t size, int cell);

/* Returns the cell of the key with this text, and stores it under the identity `key` for
** group_keys_find(). Returns CELL_NONE for a key that is neither public nor collected, and
** CELL_FAILED if memory runs out. */
int group_keys_name(struct group_keys *cells, struct identity key, const char *text);

int group_keys_count(const struct group_keys *cells);
const char *group_keys_text(const struct group_keys *cells, int cell);

/* Marks the cells of keys that a unit has kept: of its private keys, a unit keeps at most
** max_groups. A private key that no unit has kept gets no coordinate. With more coordinates, the
** probability that noise publishes a key of a single unit would be higher. Several threads may call
** group_keys_keep() at the same time. */
void group_keys_keep(struct group_keys *cells, const uint32_t *list, size_t count);
void group_keys_forget(struct group_keys *cells); /* clears all marks */
int group_keys_is_kept(const struct group_keys *cells, int cell);

/* Returns 64 bits that depend only on the key's text and the secret, not on the order of rows. */
uint64_t group_keys_hash(const struct group_keys *cells, int cell);

#endif
