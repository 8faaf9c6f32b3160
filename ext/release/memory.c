/* memory.c: see memory.h. */
#include "release/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *memory_table(size_t size) {
#ifdef MADV_HUGEPAGE
  void *table = 0;
  if (size == MEMORY_HUGE_PAGE) {
    if (posix_memalign(&table, size, size)) return 0;
    madvise(table, size, MADV_HUGEPAGE); /* a wish: pages of the usual size serve as well */
    memset(table, 0, size);
    return table;
  }
#endif
  return calloc(1, size);
}
