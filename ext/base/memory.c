/* memory.c: see memory.h. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "os/huge_pages.h"

static _Atomic(int (*)(size_t)) limit;
static atomic_size_t taken;

void memory_limit(int (*within)(size_t)) {
  atomic_store(&limit, within);
}

int memory_take(size_t size) {
  int (*within)(size_t) = atomic_load(&limit);
  size_t all = atomic_fetch_add(&taken, size) + size;
  if (!within || within(all)) return 1;
  memory_give(size);
  return 0;
}

void memory_give(size_t size) {
  atomic_fetch_sub(&taken, size);
}

static void *allocate(size_t size) {
  return size == MEMORY_HUGE_PAGE ? huge_pages_allocate(size) : calloc(1, size);
}

void *memory_table(size_t size) {
  if (!memory_take(size)) return 0;
  void *table = allocate(size);
  if (!table) memory_give(size);
  return table;
}

void memory_table_free(void *table, size_t size) {
  if (table) memory_give(size);
  free(table);
}
