/*
** csprng.h: a cryptographically secure generator of random bits for the exact samplers.
**
** The generator is the ChaCha20 keystream (RFC 8439, libsodium's implementation) under a key of 256
** bits from the operating system. Linux builds its own generator from the same cipher, so the
** extension trusts no cipher that the system does not trust. A system call for each word would cost
** more than the rest of a draw.
**
** 1. Every call of a sampler draws a fresh key and keeps the state in its own stack frame. No state
**    outlives the call, so a fork cannot duplicate it and a later read of memory cannot find it.
** 2. Fast key erasure: the first bytes of each block replace the key that made the block, and each
**    word is wiped when it is taken. The state reveals nothing about words taken earlier.
** 3. Only csprng_start() can fail. After it succeeds, a sampler gets all the bits that it asks for.
**
** Unit tests replace csprng.c at link time. There is no other way to replace it.
*/
#ifndef DIFFUSE_NOISE_CSPRNG_H
#define DIFFUSE_NOISE_CSPRNG_H

#include <stdint.h>

#define CSPRNG_KEY   32  /* bytes of a key */
#define CSPRNG_WORDS 128 /* words of a block */

struct csprng {
  struct {
    unsigned char key[CSPRNG_KEY]; /* makes the next block */
    uint64_t words[CSPRNG_WORDS];  /* random, from `next` on; zero before */
  } block;
  unsigned next;      /* first unused word */
  unsigned left;      /* unused bits in the reservoir, 0..63 */
  uint64_t reservoir; /* the unused bits of the last word of csprng_take() */
};

/* Draws a key. Returns 1, or 0 when the system provides none: make no other call then. */
int csprng_start(struct csprng *random);

/* Generates the next block. Only the functions below call it. */
void csprng_refill(struct csprng *random);

/* Wipes everything. */
void csprng_end(struct csprng *random);

/* 64 fresh random bits. */
static inline uint64_t csprng_word(struct csprng *random) {
  if (random->next == CSPRNG_WORDS) csprng_refill(random);
  uint64_t word = random->block.words[random->next];
  random->block.words[random->next++] = 0;
  return word;
}

/* `width` fresh random bits, 0 <= width <= 63. No bit is used twice and none is discarded. */
static inline uint64_t csprng_take(struct csprng *random, unsigned width) {
  uint64_t value = random->reservoir;
  if (random->left >= width) {
    random->reservoir >>= width;
    random->left -= width;
  } else {
    uint64_t word = csprng_word(random);
    unsigned used = width - random->left; /* 1..63 */
    value |= word << random->left;
    random->reservoir = word >> used;
    random->left = 64 - used;
  }
  return value & (((uint64_t)1 << width) - 1);
}

#endif
