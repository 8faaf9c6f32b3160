/* identity.c: see identity.h. */
#include "release/identity.h"

#include <math.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "noise/entropy.h"

_Static_assert(IDENTITY_SECRET_SIZE == XXH3_SECRET_SIZE_MIN, "the size of a secret");

#define HASHED                                                                                     \
  ((uint64_t)1 << 63)            /* set in the kind of a hashed identity, beside 62 bits of hash */
#define TEXT ((uint64_t)1 << 62) /* a text and a blob of the same bytes differ */

int secret_draw(struct secret *secret) {
  return entropy_fill(secret->bytes, sizeof secret->bytes);
}

struct identity identity_real(double value) {
  if (value >= -0x1p63 && value < 0x1p63 && value == trunc(value))
    return identity_integer((int64_t)value);
  struct identity identity = {IDENTITY_REAL, 0};
  memcpy(&identity.low, &value, sizeof value);
  return identity;
}

struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text) {
  XXH128_hash_t hash =
      XXH3_128bits_withSecret(size ? bytes : "", size, secret->bytes, sizeof secret->bytes);
  return (struct identity){HASHED | (is_text ? TEXT : 0) | hash.high64 >> 2, hash.low64};
}
