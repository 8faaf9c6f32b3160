/*
** memory.h: allocates zeroed memory for tables that the code reads in random order.
**
** A table of a million units has more pages of 4 KiB than the processor's address cache (TLB) can
** hold. With pages of 4 KiB, half of the time of each look-up would be spent on finding the page.
** Large tables are therefore allocated in blocks of MEMORY_HUGE_PAGE bytes. Each block is one huge
** page if the operating system provides huge pages.
*/
#ifndef DIFFUSE_OS_MEMORY_H
#define DIFFUSE_OS_MEMORY_H

#include <stddef.h>

#define MEMORY_HUGE_PAGE ((size_t)1 << 21)

/*
** Sets the function `within` that checks the memory limit. The tables of units do not use SQLite's
** allocator, but their memory counts towards the limit that the host has set for SQLite. The
** argument `taken` is the number of bytes that all such tables in this process use. `within`
** returns whether this number is within the limit. If memory_limit() was never called, there is no
** limit. Call memory_limit() before the first memory_table().
*/
void memory_limit(int (*within)(size_t taken));

/*
** memory_table() allocates `size` > 0 bytes, all zero, and counts them towards the memory limit. It
** returns null if memory runs out or the limit is reached. memory_table_free() frees such a table
** and accepts null.
*/
void *memory_table(size_t size);
void memory_table_free(void *table, size_t size);

/*
** Prefetches the cache line at an address for writing. On x86-64 the function names the instruction
** PREFETCHW. For generic x86, gcc would choose another instruction, which some processors ignore
** after a TLB miss.
*/
static inline void memory_prefetch(const void *address) {
#if defined(__x86_64__) && defined(__GNUC__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
  __builtin_prefetch(address, 1);
#endif
}

#endif
