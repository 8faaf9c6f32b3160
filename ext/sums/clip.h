/*
** clip.h: scales one unit's vector down until it fits the bounds of its layout (layout.h), in exact
** integers.
**
** The code computes the scale factor in floating point and truncates the scaled values towards
** zero. Privacy depends only on the exact check of the norm that follows. The result depends on the
** integers of the vector, not on their order.
*/
#ifndef DIFFUSE_SUMS_CLIP_H
#define DIFFUSE_SUMS_CLIP_H

#include <stddef.h>

#include "noise/lattice.h"
#include "sums/layout.h"

/*
** Clips a matrix of `cells` times `components` integers in place. The absolute value of every
** integer is below 2^126, and cells * components < 2^22. Afterwards the absolute value of every
** integer is at most shape->each (if shape->each is not 0). The norm of every block of the shape is
** at most the block's `reach`, and the norm of its leading part is at most its `lead_reach`.
** Returns the set of the blocks that had to be scaled down, as bits 1 << block.
*/
unsigned clip_vector(const struct layout *shape, int128 *values, size_t cells, int components);

/* Clips one block of such a matrix in the same way. Returns whether the block was scaled down. */
int clip_block(const struct layout *shape, const struct block *block, int128 *values, size_t cells,
               int components);

/*
** Scales numbers down in the same way until the sum of their magnitudes is at most `reach`. Returns
** whether the sum was larger.
*/
int clip_sum(int128 *values, size_t count, int64_t reach);

#endif
