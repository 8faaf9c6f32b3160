/* chunks.c: see chunks.h. Tests: tests/sums/test_unit_table.c */
#include "sums/chunks.h"

#include <stdlib.h>

#include "os/memory.h"

void chunks_open(struct chunks *chunks, size_t size) {
  *chunks = (struct chunks){.size = size};
}

void chunks_close(struct chunks *chunks) {
  for (size_t i = 0; i < chunks->slab_count; i++)
    memory_table_free(chunks->slabs[i].bytes, chunks->slabs[i].size);
  free(chunks->slabs);
  free(chunks->spare);
}

void *chunks_grown(void *array, size_t size, size_t count, size_t *room) {
  if (count < *room) return array;
  size_t more = *room * 2 + 1;
  void *larger = realloc(array, size * more);
  if (larger) *room = more;
  return larger;
}

/* Allocates another slab. Returns 1, or 0 if memory runs out. */
static int open_slab(struct chunks *chunks) {
  size_t size = chunks->size;
  for (size_t i = 0; i < chunks->slab_count && size < MEMORY_HUGE_PAGE; i++) size *= 2;
  /* If chunks are short, little of a huge page is left over. */
  if (size > MEMORY_HUGE_PAGE && chunks->size <= MEMORY_HUGE_PAGE / 64) size = MEMORY_HUGE_PAGE;
  struct slab *slabs = realloc(chunks->slabs, sizeof *slabs * (chunks->slab_count + 1));
  if (!slabs) return 0;
  chunks->slabs = slabs;
  char *bytes = memory_table(size);
  if (!bytes) return 0;
  slabs[chunks->slab_count++] = (struct slab){bytes, size};
  chunks->fresh = bytes;
  chunks->fresh_end = bytes + size / chunks->size * chunks->size;
  return 1;
}

void *chunks_take(struct chunks *chunks) {
  if (chunks->spare_count) return chunks->spare[--chunks->spare_count];
  if (chunks->fresh == chunks->fresh_end && !open_slab(chunks)) return 0;
  void *chunk = chunks->fresh;
  chunks->fresh += chunks->size;
  return chunk;
}

int chunks_free(struct chunks *chunks, void *chunk) {
  void **spare =
      chunks_grown(chunks->spare, sizeof *spare, chunks->spare_count, &chunks->spare_room);
  if (!spare) return 0;
  chunks->spare = spare;
  spare[chunks->spare_count++] = chunk;
  return 1;
}
