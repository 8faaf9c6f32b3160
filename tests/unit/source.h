/*
** source.h: random bits that the test controls. The functions of csprng.h defined here take the
** place of csprng.c at link time.
**
** The bits are those of SplitMix64 from a chosen seed; they can be told to fail. What a test draws
** from a seed is always the same: a test of a law that passes once passes for ever, and raises no
** false alarm.
*/
#ifndef TEST_SOURCE_H
#define TEST_SOURCE_H

#include <string.h>

#include "noise/csprng.h"
#include "splitmix.h"

static struct {
  uint64_t state; /* of SplitMix64 */
  int fails;      /* there are no bits */
  int open;       /* started and not ended */
  long blocks;    /* asked for so far */
} source;

static void source_start(uint64_t seed, int fails) {
  memset(&source, 0, sizeof source);
  source.state = seed;
  source.fails = fails;
}

int csprng_start(struct csprng *bits) {
  if (source.fails) return 0;
  source.open++;
  memset(bits, 0, sizeof *bits);
  bits->next = CSPRNG_WORDS;
  return 1;
}

void csprng_refill(struct csprng *bits) {
  for (int i = 0; i < CSPRNG_WORDS; i++) bits->block.words[i] = splitmix(&source.state);
  bits->next = 0;
  source.blocks++;
}

void csprng_end(struct csprng *bits) {
  memset(bits, 0, sizeof *bits);
  source.open--;
}

#endif
