/* entropy.h: gets cryptographic random bytes from the operating system.
**
** This code keeps no state, buffer or seed that a fork could duplicate. Unit tests replace
** entropy_fill() at link time. There is no other way to replace this function. */
#ifndef DIFFUSE_NOISE_ENTROPY_H
#define DIFFUSE_NOISE_ENTROPY_H

#include <stddef.h>

/* Fills `bytes` with random bytes. Returns 0 if the system provides none. */
int entropy_fill(void *bytes, size_t count);

/* Overwrites a secret with zeros. The compiler cannot remove these writes. */
void entropy_wipe(void *bytes, size_t count);

#endif
