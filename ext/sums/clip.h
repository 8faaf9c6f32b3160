/*
** clip.h: makes one unit's vector fit its blocks, in exact integers.
**
** The factor is computed in floating point. Privacy depends only on the exact check of the squared
** norm, after truncation towards zero. The result depends on the integers of the vector, not on
** their order.
*/
#ifndef DIFFUSE_SUMS_CLIP_H
#define DIFFUSE_SUMS_CLIP_H

#include <stddef.h>

#include "noise/lattice.h"
#include "sums/layout.h"

/*
** Clips `cells` rows of `components` integers each, |.| < 2^126, in place. Afterwards every integer
** is at most `each`, every block of the shape has a norm of at most its reach, and the leading part
** of each block has a norm of at most lead_reach. cells * components < 2^22.
*/
void clip_vector(const struct layout *shape, int128 *values, size_t cells, int components);

#endif
