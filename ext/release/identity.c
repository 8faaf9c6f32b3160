/* identity.c: see identity.h. */
#include "release/identity.h"

#include <math.h>
#include <sodium.h>
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

/*
** 128 bits of SHA-256 of the secret, if any, and the bytes; the same on machines of every byte
** order.
*/
static struct identity long_hash(const struct secret *secret, const void *bytes, size_t size) {
  crypto_hash_sha256_state state;
  uint8_t digest[crypto_hash_sha256_BYTES];
  struct identity hash = {0, 0};
  crypto_hash_sha256_init(&state);
  if (secret) crypto_hash_sha256_update(&state, secret->bytes, sizeof secret->bytes);
  crypto_hash_sha256_update(&state, bytes, size);
  crypto_hash_sha256_final(&state, digest);
  for (int i = 7; i >= 0; i--) {
    hash.kind = hash.kind << 8 | digest[i];
    hash.low = hash.low << 8 | digest[i + 8];
  }
  return hash;
}

static struct identity short_hash(const struct secret *secret, const void *bytes, size_t size) {
  XXH128_hash_t hash =
      XXH3_128bits_withSecret(size ? bytes : "", size, secret->bytes, sizeof secret->bytes);
  return (struct identity){hash.high64, hash.low64};
}

#define LONG 240 /* bytes above which XXH3 is another algorithm */

/* 126 bits, and two that say of what: values of rows are HASHED. */
static struct identity hashed(const struct secret *secret, const void *bytes, size_t size,
                              uint64_t what) {
  struct identity hash =
      size > LONG || !secret ? long_hash(secret, bytes, size) : short_hash(secret, bytes, size);
  return (struct identity){what | hash.kind >> 2, hash.low};
}

struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text) {
  return hashed(secret, bytes, size, HASHED | (is_text ? TEXT : 0));
}

int identity_is_somebody(struct identity identity) {
  return identity.kind & HASHED ||
         (identity.kind >= IDENTITY_INTEGER && identity.kind <= IDENTITY_NULL);
}

struct identity identity_name(const struct secret *secret, const char *name) {
  return hashed(secret, name, strlen(name), TEXT);
}
