/*
** memory.h: zeroed memory for tables that are read at random places.
**
** A table of a million units has more pages of 4 KiB than the processor's address cache (TLB) can
** hold. Half of the time of a look-up would be spent on finding the page. Large tables are
** therefore allocated in huge pages, if the operating system provides them.
*/
#ifndef DIFFUSE_BASE_MEMORY_H
#define DIFFUSE_BASE_MEMORY_H

#include <stddef.h>

#define MEMORY_HUGE_PAGE ((size_t)1 << 21)

/*
** Sets the function that checks the memory limit. Units use the memory of the process, not that of
** SQLite, but it counts towards the limit that the host has set for SQLite. `within` returns
** whether this number of bytes, the total for units in this process, is within the limit. Without
** this function there is no limit. Call it before any memory is taken.
*/
void memory_limit(int (*within)(size_t taken));

/*
** Counts `size` bytes as taken: returns 1, or 0 if that would exceed the limit. memory_give()
** counts them as free again.
*/
int memory_take(size_t size);
void memory_give(size_t size);

/*
** Takes and returns `size` > 0 bytes of zeros; null when out of memory. memory_table_free() frees
** them and accepts null.
*/
void *memory_table(size_t size);
void memory_table_free(void *table, size_t size);

/*
** Prefetches the cache line at an address for writing. Uses the instruction for writes explicitly,
** because some processors drop the instruction that gcc chooses for generic x86 when the TLB
** misses.
*/
static inline void memory_prefetch(const void *address) {
#if defined(__x86_64__) && defined(__GNUC__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
  __builtin_prefetch(address, 1);
#endif
}

#endif
