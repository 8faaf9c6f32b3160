/*
** memory.h: zeroed memory for tables that are read at random places.
**
** A table of a million units is larger than what the processor's address cache (TLB) covers in pages of
** 4 KiB: half of the time of a look-up would go into finding the page. Large tables therefore ask for
** huge pages, where the system has them.
*/
#ifndef DIFFUSE_RELEASE_MEMORY_H
#define DIFFUSE_RELEASE_MEMORY_H

#include <stddef.h>

/* `size` bytes of zeros, to be freed with free(); null when out of memory. size > 0. */
void *memory_table(size_t size);

#endif
