/*
** chunks.h: memory in chunks of one size. A chunk that is freed is used again, and all chunks are
** freed together at the end.
**
** Chunks are cut from slabs. The first slab has one chunk, and each other slab is twice as large as
** the slab before, up to a huge page.
*/
#ifndef DIFFUSE_SUMS_CHUNKS_H
#define DIFFUSE_SUMS_CHUNKS_H

#include <stddef.h>

struct slab {
  char *bytes;
  size_t size;
};

struct chunks {
  size_t size; /* the number of bytes of a chunk */
  struct slab *slabs;
  size_t slab_count;
  char *fresh, *fresh_end; /* the part of the last slab that no chunk has used yet */
  void **spare;            /* chunks that are free again */
  size_t spare_count, spare_room;
};

/* chunks_open() allocates nothing. `size` must be a multiple of the alignment that chunks need. */
void chunks_open(struct chunks *chunks, size_t size);
void chunks_close(struct chunks *chunks);

/* Returns a chunk, or null if memory runs out. The contents are unspecified. */
void *chunks_take(struct chunks *chunks);

/* Makes a chunk free again. Returns 1, or 0 if memory runs out. */
int chunks_free(struct chunks *chunks, void *chunk);

/*
** Returns an array with room for one more element than `count`, or null if memory runs out. `room`
** is the number of elements for which the array has room.
*/
void *chunks_grown(void *array, size_t size, size_t count, size_t *room);

#endif
