/*
** memory.h: zeroed memory for tables that are read at random places.
**
** A table of a million units is larger than what the processor's address cache (TLB) covers in
** pages of 4 KiB: half of the time of a look-up would go into finding the page. Large tables
** therefore come in pieces that ask to be huge pages, where the system has them.
*/
#ifndef DIFFUSE_RELEASE_MEMORY_H
#define DIFFUSE_RELEASE_MEMORY_H

#include <stddef.h>

#define MEMORY_HUGE_PAGE ((size_t)1 << 21)

/* `size` bytes of zeros, to be freed with free(); null when out of memory. size > 0. */
void *memory_table(size_t size);

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
