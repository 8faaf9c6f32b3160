/* bits.c: ChaCha20 with fast key erasure, from a key of the operating system. */
#include "noise/bits.h"

#include <sodium.h>
#include <string.h>

#include "noise/entropy.h"

_Static_assert(BITS_KEY == crypto_stream_chacha20_ietf_KEYBYTES, "a key of the cipher");

/*
** sodium_init() picks the implementation for this processor, once for all threads. Nothing else of
** libsodium's is used, in particular none of its random numbers.
*/
int bits_start(struct bits *bits) {
  memset(bits, 0, sizeof *bits);
  bits->next = BITS_WORDS;
  if (entropy_fill(bits->block.key, BITS_KEY) == 0 && sodium_init() >= 0) return 0;
  bits_end(bits);
  return -1;
}

/* A key makes one block only, so the nonce may be the same. */
void bits_refill(struct bits *bits) {
  static const unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
  unsigned char key[BITS_KEY];
  memcpy(key, bits->block.key, sizeof key);
  crypto_stream_chacha20_ietf((unsigned char *)&bits->block, sizeof bits->block, nonce, key);
  entropy_wipe(key, sizeof key);
  bits->next = 0;
}

void bits_end(struct bits *bits) {
  entropy_wipe(bits, sizeof *bits);
}
