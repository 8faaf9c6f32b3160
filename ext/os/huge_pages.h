/* huge_pages.h: memory in pages of 2 MiB, if the operating system provides them. */
#ifndef DIFFUSE_OS_HUGE_PAGES_H
#define DIFFUSE_OS_HUGE_PAGES_H

#include <stddef.h>

/*
** Allocates `size` bytes of zeros, in huge pages if the operating system provides them, and
** otherwise in pages of the usual size. `size` is a power of two. Free the memory with free().
** Returns null if memory runs out.
*/
void *huge_pages_allocate(size_t size);

#endif
