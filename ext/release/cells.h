/*
** cells.h: the keys of a grouped release, and which cell a row's key stands for.
**
** A key is the text that it is shown as: keys that look alike are one group. Public keys are all
** there from the start, and rows with other keys have no cell; private ones are collected from the
** rows.
*/
#ifndef DIFFUSE_RELEASE_CELLS_H
#define DIFFUSE_RELEASE_CELLS_H

#include "release/identity.h"

struct cells;

#define CELL_NONE   (-1)
#define CELL_NEW    (-2) /* not seen yet: ask cells_name() */
#define CELL_FAILED (-3) /* out of memory */

/*
** Starts with these public keys, all different, cell i for keys[i]; or with none, collecting. Null:
** out of memory.
*/
struct cells *cells_open(const struct secret *secret, char *const *keys, int count, int collecting);
void cells_close(struct cells *cells);

/* The cell of a key by its identity: one that has been named, or CELL_NEW. */
int cells_find(const struct cells *cells, struct identity key);

/*
** The cell of a key by its text; the identity is remembered where there is one. CELL_NONE for a key
** that is not public, CELL_FAILED without memory.
*/
int cells_name(struct cells *cells, struct identity key, const char *text);

int cells_count(const struct cells *cells);
const char *cells_text(const struct cells *cells, int cell);

/*
** A cell that some unit has kept. Private keys that no unit has kept are no coordinates: each noisy
** count more would be a chance more for a unit's own key to be shown.
*/
void cells_keep(struct cells *cells, int cell);
void cells_forget(struct cells *cells); /* none is kept */
int cells_is_kept(const struct cells *cells, int cell);

/* 64 bits that depend on the text and the secret alone, not on the order of rows. */
uint64_t cells_hash(const struct cells *cells, int cell);

#endif
