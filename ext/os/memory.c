/*
** memory.c: see memory.h.
** Tests: tests/faults/test_injection.py, tests/faults/test_calls.py, tests/sums/test_unit_table.c
*/
#include "os/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#if defined(__linux__)
#include <string.h>
#include <sys/mman.h>
#endif

static _Atomic(int (*)(size_t)) limit;
static atomic_size_t taken;

void memory_limit(int (*within)(size_t)) {
  atomic_store(&limit, within);
}

/* Counts `size` bytes as free again. */
static void give(size_t size) {
  atomic_fetch_sub(&taken, size);
}

/*
** Counts `size` bytes as taken and returns 1. If the total would exceed the limit, the function
** counts nothing and returns 0.
*/
static int take(size_t size) {
  int (*within)(size_t) = atomic_load(&limit);
  size_t all = atomic_fetch_add(&taken, size) + size;
  if (!within || within(all)) return 1;
  give(size);
  return 0;
}

/*
** Allocates `size` bytes of zeros, a power of two, in huge pages if the operating system provides
** them.
*/
#if defined(__linux__)
static void *allocate_huge_page(size_t size) {
  void *pages = 0;
  if (posix_memalign(&pages, size, size)) return 0;
  madvise(pages, size, MADV_HUGEPAGE); /* the kernel may ignore this advice */
  memset(pages, 0, size);
  return pages;
}
#else
static void *allocate_huge_page(size_t size) {
  return calloc(1, size);
}
#endif

void *memory_table(size_t size) {
  if (!take(size)) return 0;
  void *table = size == MEMORY_HUGE_PAGE ? allocate_huge_page(size) : calloc(1, size);
  if (!table) give(size);
  return table;
}

void memory_table_free(void *table, size_t size) {
  if (table) give(size);
  free(table);
}
