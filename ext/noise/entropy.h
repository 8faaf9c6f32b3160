/*
** entropy.h: the operating system's cryptographic random bytes. The one file with per-OS code.
**
** No state, no buffer, no seed: nothing that a fork could duplicate. Unit tests replace
** entropy_fill() at link time; nothing else can.
*/
#ifndef DIFFUSE_NOISE_ENTROPY_H
#define DIFFUSE_NOISE_ENTROPY_H

#include <stddef.h>

/* Fills `bytes` with `count` random bytes. Returns 0, or -1 when the system has none to give. */
int entropy_fill(void *bytes, size_t count);

/* Overwrites a secret in a way that the compiler may not leave out. */
void entropy_wipe(void *bytes, size_t count);

#endif
