/* huge_pages.h: memory in pages of 2 MiB, where the operating system has them. */
#ifndef DIFFUSE_OS_HUGE_PAGES_H
#define DIFFUSE_OS_HUGE_PAGES_H

#include <stddef.h>

/*
** `size` bytes of zeros on pages of that size, where there are such pages; otherwise like calloc().
** `size` is a power of two. free() gives them back. Null when out of memory.
*/
void *huge_pages_allocate(size_t size);

#endif
