/* source.h: random bits that the test controls. This file defines the functions of csprng.c. Its
** definitions replace csprng.c at link time.
**
** SplitMix64 generates the bits from a chosen seed. A test can also make the generator fail. The
** draws of a test depend only on its seed, so a statistical test that passes once always passes and
** raises no false alarm. */
#ifndef TEST_SOURCE_H
#define TEST_SOURCE_H

#include <string.h>

#include "noise/exact_events.h"
#include "splitmix.h"

static struct {
  uint64_t state; /* state of SplitMix64 */
  int fails;      /* 1: csprng_start() fails */
  int open;       /* number of generators that are started and not ended */
  long blocks;    /* number of blocks so far */
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
