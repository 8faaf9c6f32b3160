/*
** bits.h: random bits for the exact samplers.
**
** The words are the ChaCha20 keystream (RFC 8439, libsodium's implementation) of a key of 256 bits
** from the operating system, which is what the system's own generator is on Linux: nothing is
** believed of the cipher that was not believed before. A system call for each word would cost more
** than the rest of a draw.
**
** 1. Every call of a sampler starts with a fresh key, in its own frame. No state outlives the call,
**    so none is there for a fork to duplicate or for a later read of memory to find.
** 2. Fast key erasure: the first bytes of each block replace the key that made it. Words are wiped
**    as they are taken. Whoever sees the state learns nothing about words that were taken.
** 3. The one step that can fail is the first: a sampler that has started gets all the bits it asks
**    for.
** Unit tests replace bits.c at link time; nothing else can.
*/
#ifndef DIFFUSE_NOISE_BITS_H
#define DIFFUSE_NOISE_BITS_H

#include <stdint.h>

#define BITS_KEY   32  /* bytes of a key */
#define BITS_WORDS 128 /* words of a block */

struct bits {
  struct {
    unsigned char key[BITS_KEY]; /* makes the next block */
    uint64_t words[BITS_WORDS];  /* random, from `next` on; zero before */
  } block;
  unsigned next;      /* first unused word */
  unsigned left;      /* bits left in the reservoir, 0..63 */
  uint64_t reservoir; /* the last word of bits_take(), shifted down by what was used of it */
};

/* Draws a key. Returns 0, or -1 when the system has none to give: no other call is then allowed. */
int bits_start(struct bits *bits);

/* The next block. Called by those below. */
void bits_refill(struct bits *bits);

/* Wipes everything. */
void bits_end(struct bits *bits);

/* 64 fresh random bits. */
static inline uint64_t bits_word(struct bits *bits) {
  if (bits->next == BITS_WORDS) bits_refill(bits);
  uint64_t word = bits->block.words[bits->next];
  bits->block.words[bits->next++] = 0;
  return word;
}

/* `width` fresh random bits, 0 <= width <= 63: none is used twice, none is left over. */
static inline uint64_t bits_take(struct bits *bits, unsigned width) {
  uint64_t value = bits->reservoir;
  if (bits->left >= width) {
    bits->reservoir >>= width;
    bits->left -= width;
  } else {
    uint64_t word = bits_word(bits);
    unsigned used = width - bits->left; /* 1..63 */
    value |= word << bits->left;
    bits->reservoir = word >> used;
    bits->left = 64 - used;
  }
  return value & (((uint64_t)1 << width) - 1);
}

#endif
