/*
** entropy.h: cryptographic random bytes from the operating system.
**
** There is no state, buffer or seed that a fork could duplicate. Unit tests replace entropy_fill()
** at link time. There is no other way to replace it.
*/
#ifndef DIFFUSE_NOISE_ENTROPY_H
#define DIFFUSE_NOISE_ENTROPY_H

#include <stddef.h>

/* Fills `bytes` with `count` random bytes. Returns 1, or 0 if the system provides none. */
int entropy_fill(void *bytes, size_t count);

/* Overwrites a secret. The compiler may not optimise this away. */
void entropy_wipe(void *bytes, size_t count);

#endif
