/* csprng.h: a cryptographically secure generator of random bits for the exact samplers.
**
** The generator is the ChaCha20 keystream (RFC 8439) in libsodium's implementation, with a key of
** 256 bits from the operating system. The generator of the Linux kernel uses the same cipher, so on
** Linux the extension depends on no additional cipher. The samplers do not ask the operating system
** for each word, because a system call takes longer than the rest of a draw.
**
** 1. Every call of a sampler draws a fresh key and keeps the generator's state in its own stack
**    frame. The sampler wipes the state before it returns. A fork can therefore not duplicate the
**    state, and nobody can find it in memory later.
** 2. Fast key erasure: the first bytes of each block replace the key that made the block, and each
**    word is wiped when it is taken. The state reveals nothing about words taken earlier.
** 3. Only csprng_start() can fail. After it succeeds, a sampler gets all the bits that it asks for.
**
** Unit tests replace csprng.c at link time. There is no other way to replace it. */
#ifndef DIFFUSE_NOISE_CSPRNG_H
#define DIFFUSE_NOISE_CSPRNG_H

#include <stdint.h>

#define CSPRNG_KEY   32  /* bytes of a key */
#define CSPRNG_WORDS 128 /* words of a block */

struct csprng {
  struct {
    unsigned char key[CSPRNG_KEY]; /* csprng_refill() makes the next block from this key */
    /* Words before `next` are used and zero, later words are random. */
    uint64_t words[CSPRNG_WORDS];
  } block;
  unsigned next;      /* index of the first unused word */
  unsigned left;      /* number of unused bits in the reservoir, 0..63 */
  uint64_t reservoir; /* unused bits of the last word that csprng_take() has taken */
};

/* Draws a key. Returns 0 if the system provides no random bytes; the generator is then unusable. */
int csprng_start(struct csprng *random);

/* Generates the next block. Only csprng_word() calls this function. */
void csprng_refill(struct csprng *random);

/* Overwrites the whole state with zeros. */
void csprng_end(struct csprng *random);

/* Returns 64 fresh random bits. */
static inline uint64_t csprng_word(struct csprng *random) {
  if (random->next == CSPRNG_WORDS) csprng_refill(random);
  uint64_t word = random->block.words[random->next];
  random->block.words[random->next++] = 0;
  return word;
}

/* Returns `width` <= 63 fresh random bits, and never returns a bit twice or skips one. */
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
