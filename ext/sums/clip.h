/*
** clip.h: makes one unit's vector fit its blocks, in exact integers.
**
** The factor is found in floating point; privacy rests on the exact check of the squared norm
** alone, after truncation towards zero. The result depends on the integers of the vector only, not
** on their order.
*/
#ifndef DIFFUSE_SUMS_CLIP_H
#define DIFFUSE_SUMS_CLIP_H

#include <stddef.h>

#include "noise/lattice.h"
#include "sums/layout.h"

/*
** Clips `cells` rows of `components` integers each, |.| < 2^126, in place: afterwards every integer
** is at most `each`, and every block of the shape has a norm of at most its reach, and so has its
** leading part. cells * components < 2^22.
*/
void clip_vector(const struct layout *shape, int128 *values, size_t cells, int components);

#endif
