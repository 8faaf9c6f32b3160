/* csprng.c: the generator of random bits (exact_events.h). Tests: tests/noise/test_csprng.c */
#include <sodium.h>
#include <string.h>

#include "noise/exact_events.h"
#include "noise/noise.h"

_Static_assert(CSPRNG_KEY == crypto_stream_chacha20_ietf_KEYBYTES, "a key of the cipher");

/* The first call of sodium_init() selects the implementation of ChaCha20 for this processor, for
** all threads. The extension does not use libsodium's own random numbers. */
int csprng_start(struct csprng *random) {
  memset(random, 0, sizeof *random);
  random->next = CSPRNG_WORDS;
  if (entropy_fill(random->block.key, CSPRNG_KEY) && sodium_init() >= 0) return 1;
  csprng_end(random);
  return 0;
}

/* A constant nonce is safe, because no key makes more than one block. */
void csprng_refill(struct csprng *random) {
  static const unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
  unsigned char key[CSPRNG_KEY];
  memcpy(key, random->block.key, sizeof key);
  crypto_stream_chacha20_ietf((unsigned char *)&random->block, sizeof random->block, nonce, key);
  entropy_wipe(key, sizeof key);
  random->next = 0;
}

void csprng_end(struct csprng *random) {
  entropy_wipe(random, sizeof *random);
}
