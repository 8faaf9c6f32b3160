/* huge_pages.c: see huge_pages.h. Tests: tests/sums/test_unit_table.c */
#include "os/huge_pages.h"

#include <stdlib.h>

#if defined(__linux__)

#include <string.h>
#include <sys/mman.h>

void *huge_pages_allocate(size_t size) {
  void *pages = 0;
  if (posix_memalign(&pages, size, size)) return 0;
  madvise(pages, size, MADV_HUGEPAGE); /* the kernel may ignore this advice */
  memset(pages, 0, size);
  return pages;
}

#else

void *huge_pages_allocate(size_t size) {
  return calloc(1, size);
}

#endif
