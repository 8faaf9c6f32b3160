/* test_csprng.c: tests csprng.c, ChaCha20 with fast key erasure. The two functions of entropy.c
** defined here replace entropy.c at link time. They provide a key that the test has chosen, or
** fail, and record which bytes were wiped.
**
** The reference is RFC 8439, appendix A.1, which lists keystream blocks of known keys with a nonce
** of zeros. */
#include <string.h>

#include "check.h"
#include "noise/exact_events.h"
#include "noise/noise.h"

static unsigned char system_key[CSPRNG_KEY]; /* the key that the system provides */
static int system_fails;                     /* 1: the system provides no random bytes */
static int requests;
static const unsigned char *wiped_key; /* the last 32 bytes that were wiped */

int entropy_fill(void *bytes, size_t count) {
  requests++;
  CHECK(count == CSPRNG_KEY, "%zu bytes asked for", count);
  memcpy(bytes, system_key, CSPRNG_KEY);
  return !system_fails;
}

void entropy_wipe(void *bytes, size_t count) {
  memset(bytes, 0, count);
  if (count == CSPRNG_KEY) wiped_key = bytes;
}

/* RFC 8439, A.1, vectors 1 and 2: the first two blocks of the key 0. */
static const unsigned char zero_key[128] = {
    0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28,
    0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7,
    0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48, 0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8, 0xd8, 0x4a, 0x37,
    0x6a, 0x43, 0xb8, 0xf4, 0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86,
    0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a, 0x98, 0xba, 0x97, 0x7c, 0x73, 0x2d, 0x08, 0x0d,
    0xcb, 0x0f, 0x29, 0xa0, 0x48, 0xe3, 0x65, 0x69, 0x12, 0xc6, 0x53, 0x3e, 0x32, 0xee, 0x7a, 0xed,
    0x29, 0xb7, 0x21, 0x76, 0x9c, 0xe6, 0x4e, 0x43, 0xd5, 0x71, 0x33, 0xb0, 0x74, 0xd8, 0x39, 0xd5,
    0x31, 0xed, 0x1f, 0x28, 0x51, 0x0a, 0xfb, 0x45, 0xac, 0xe1, 0x0a, 0x1f, 0x4b, 0x79, 0x4d, 0x6f,
};

/* RFC 8439, A.1, vector 3: the second block of the key 0, ..., 0, 1. */
static const unsigned char one_key[64] = {
    0x3a, 0xeb, 0x52, 0x24, 0xec, 0xf8, 0x49, 0x92, 0x9b, 0x9d, 0x82, 0x8d, 0xb1, 0xce, 0xd4, 0xdd,
    0x83, 0x20, 0x25, 0xe8, 0x01, 0x8b, 0x81, 0x60, 0xb8, 0x22, 0x84, 0xf3, 0xc9, 0x49, 0xaa, 0x5a,
    0x8e, 0xca, 0x00, 0xbb, 0xb4, 0xa7, 0x3b, 0xda, 0xd1, 0x92, 0xb5, 0xc4, 0x2f, 0x73, 0xf2, 0xfd,
    0x4e, 0x27, 0x36, 0x44, 0xc8, 0xb3, 0x61, 0x25, 0xa6, 0x4a, 0xdd, 0xeb, 0x00, 0x6c, 0x13, 0xa0,
};

static void start(struct csprng *bits, unsigned char last_byte) {
  memset(system_key, 0, sizeof system_key);
  system_key[CSPRNG_KEY - 1] = last_byte;
  system_fails = requests = 0;
  memset(bits, 0x5a, sizeof *bits);
  CHECK(csprng_start(bits) == 1, "no start");
  CHECK(requests == 1, "%d requests", requests);
}

/* Takes words from the generator and stores their bytes in the order of the keystream. */
static void take_bytes(struct csprng *bits, unsigned char *bytes, size_t words) {
  for (size_t i = 0; i < words; i++) {
    uint64_t word = csprng_word(bits);
    memcpy(bytes + 8 * i, &word, sizeof word);
  }
}

/* The first 32 bytes of the first block are the next key. The remaining bytes are the words that
** the generator returns. */
static void words_are_the_keystream_of_the_rfc(void) {
  struct csprng bits;
  unsigned char bytes[96];
  start(&bits, 0);
  take_bytes(&bits, bytes, 12);
  CHECK(memcmp(bytes, zero_key + CSPRNG_KEY, 96) == 0, "key 0");
  CHECK(memcmp(bits.block.key, zero_key, CSPRNG_KEY) == 0, "the next key");
  start(&bits, 1);
  take_bytes(&bits, bytes, 12);
  CHECK(memcmp(bytes + 32, one_key, 64) == 0, "key 1");
}

/* The first 32 bytes of the first block are the key of the second block. */
static void each_block_has_a_key_of_its_own(void) {
  struct csprng bits, other;
  unsigned char first[8 * CSPRNG_WORDS], second[8 * CSPRNG_WORDS], expected[8 * CSPRNG_WORDS];
  start(&bits, 0);
  take_bytes(&bits, first, CSPRNG_WORDS);
  take_bytes(&bits, second, CSPRNG_WORDS);
  CHECK(requests == 1, "%d requests", requests);
  memcpy(system_key, zero_key, CSPRNG_KEY);
  CHECK(csprng_start(&other) == 1, "no start");
  take_bytes(&other, expected, CSPRNG_WORDS);
  CHECK(memcmp(second, expected, sizeof expected) == 0, "another block");
  CHECK(memcmp(bits.block.key, other.block.key, CSPRNG_KEY) == 0, "another key");
}

static int all_zero(const void *bytes, size_t count) {
  const unsigned char *next = bytes;
  for (size_t i = 0; i < count; i++) {
    if (next[i]) return 0;
  }
  return 1;
}

static void words_and_keys_are_wiped(void) {
  struct csprng bits;
  start(&bits, 0);
  wiped_key = NULL;
  for (unsigned i = 1; i <= CSPRNG_WORDS; i++) {
    csprng_word(&bits);
    CHECK(all_zero(bits.block.words, i * sizeof *bits.block.words), "word %u is kept", i);
  }
  CHECK(wiped_key != NULL, "a copy of the key is kept");
  csprng_take(&bits, 5);
  CHECK(!all_zero(&bits, sizeof bits), "nothing to wipe");
  csprng_end(&bits);
  CHECK(all_zero(&bits, sizeof bits), "not wiped");
}

static void no_key_no_start(void) {
  struct csprng bits;
  system_fails = 1;
  CHECK(csprng_start(&bits) == 0, "started");
}

/* csprng_take() takes the bits of a word from the lowest to the highest, and loses no bits between
** two words. */
static void takes_cut_words_without_loss(void) {
  struct csprng bits, words;
  start(&bits, 7);
  start(&words, 7);
  uint64_t word = 0;
  unsigned left = 0;
  for (unsigned i = 0; i < 100000; i++) {
    unsigned width = i * 37 % 64;
    uint64_t taken = csprng_take(&bits, width), expected = 0;
    for (unsigned bit = 0; bit < width; bit++) {
      if (left == 0) {
        word = csprng_word(&words);
        left = 64;
      }
      expected |= (word & 1) << bit;
      word >>= 1;
      left--;
    }
    CHECK(taken == expected, "take %u of %u bits", i, width);
    if (taken != expected) return;
  }
}

int main(void) {
  RUN(words_are_the_keystream_of_the_rfc);
  RUN(each_block_has_a_key_of_its_own);
  RUN(words_and_keys_are_wiped);
  RUN(no_key_no_start);
  RUN(takes_cut_words_without_loss);
  FINISH();
}
