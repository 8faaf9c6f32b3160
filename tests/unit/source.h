/*
** source.h: a source of random bytes that the test controls. The two functions of entropy.h defined here take
** the place of entropy.c at link time.
**
** The source is SplitMix64 from a chosen seed and can be told to fail at its n-th request. It remembers where
** the bytes went, and entropy_wipe() here notes whether they were wiped again. What a test draws from a seed
** is always the same: a test of a law that passes once passes for ever, and raises no false alarm.
*/
#ifndef TEST_SOURCE_H
#define TEST_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/entropy.h"

#define NEVER (-1L)

static struct {
  uint64_t state;      /* of SplitMix64 */
  long fail_at;        /* number of the first request that fails, from 0; or NEVER */
  long requests;       /* requests so far */
  long after_failure;  /* requests that came after one had failed */
  unsigned char *held; /* the buffer that was filled last and has not been wiped since */
  size_t held_count;   /* its length */
} source;

static void source_start(uint64_t seed, long fail_at) {
  memset(&source, 0, sizeof source);
  source.state = seed;
  source.fail_at = fail_at;
}

static uint64_t source_word(void) {
  uint64_t z = source.state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A failing request leaves rubbish behind, as a short read would. */
int entropy_fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  long request = source.requests++;
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word = source_word();
    memcpy(next + i, &word, count - i < 8 ? count - i : 8);
  }
  source.held = next;
  source.held_count = count;
  if (source.fail_at == NEVER || request < source.fail_at) return 0;
  source.after_failure += request > source.fail_at;
  return -1;
}

void entropy_wipe(void *bytes, size_t count) {
  unsigned char *first = bytes;
  memset(first, 0, count);
  if (first <= source.held && source.held + source.held_count <= first + count) source.held = NULL;
}

#endif
