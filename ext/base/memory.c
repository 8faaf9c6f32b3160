/* memory.c: see memory.h. Tests: tests/faults/test_injection.py, tests/faults/test_calls.py */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "os/huge_pages.h"

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

void *memory_table(size_t size) {
  if (!take(size)) return 0;
  void *table = size == MEMORY_HUGE_PAGE ? huge_pages_allocate(size) : calloc(1, size);
  if (!table) give(size);
  return table;
}

void memory_table_free(void *table, size_t size) {
  if (table) give(size);
  free(table);
}
