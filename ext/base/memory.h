/*
** memory.h: zeroed memory for tables that are read at random places.
**
** A table of a million units is larger than what the processor's address cache (TLB) covers in
** pages of 4 KiB: half of the time of a look-up would go into finding the page. Large tables
** therefore come in pieces that ask to be huge pages, where the system has them.
*/
#ifndef DIFFUSE_BASE_MEMORY_H
#define DIFFUSE_BASE_MEMORY_H

#include <stddef.h>

#define MEMORY_HUGE_PAGE ((size_t)1 << 21)

/*
** What units need is the process's own memory, aligned as it has to be, and counts towards the
** limit that the host has set for SQLite's. `within` says whether so many bytes, all that units
** have in this process, are within it; without it there is no limit. To be set before anything is
** taken.
*/
void memory_limit(int (*within)(size_t taken));

/* Counts `size` more bytes: 0, or -1 where they would be beyond the limit. And so many fewer. */
int memory_take(size_t size);
void memory_give(size_t size);

/*
** `size` bytes of zeros, which are taken; null when out of memory. size > 0. Frees them; or null.
*/
void *memory_table(size_t size);
void memory_table_free(void *table, size_t size);

/*
** Asks for the cache line at an address that is going to be written. By the instruction that says
** so: the one that gcc takes for x86 in general is dropped where the address cache misses, on some
** processors.
*/
static inline void memory_prefetch(const void *address) {
#if defined(__x86_64__) && defined(__GNUC__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
  __builtin_prefetch(address, 1);
#endif
}

#endif
