/* noise.h: a source of random bytes that is the same in every run, in place of ext/noise/entropy.c.
**
** The secrets for the hashes of identities are always the same. They do not come from the stream of
** the noise, because one way to make a release may need more secrets than another way. */
#ifndef TEST_FIXED_NOISE_H
#define TEST_FIXED_NOISE_H

#include <stdint.h>
#include <string.h>

#include "../helpers/splitmix.h"
#include "noise/noise.h"
#include "sums/sums.h"

static uint64_t fixed_noise; /* the state of the stream; assign a seed to start it anew */

static void fixed_fill(uint64_t *state, unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    bytes[i] = (unsigned char)splitmix(state);
  }
}

int entropy_fill(void *bytes, size_t count) {
  uint64_t secret = 1;
  int is_noise = count != sizeof(struct secret) && count != STATE_SERIAL;
  fixed_fill(is_noise ? &fixed_noise : &secret, bytes, count);
  return 1;
}

void entropy_wipe(void *bytes, size_t count) {
  memset(bytes, 0, count);
}

#endif
