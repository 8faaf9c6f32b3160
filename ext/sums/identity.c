/* identity.c: see sums.h. Tests: tests/sums/test_identity.c */
#include "sums/sums.h"

#include <math.h>
#include <sodium.h>
#include <string.h>

#include "noise/noise.h"

/* HASHED is set in the kind of a hashed row value, beside 62 bits of the hash. */
#define HASHED ((uint64_t)1 << 63)
#define TEXT   ((uint64_t)1 << 62) /* distinguishes a text from a blob with the same bytes */

struct identity identity_real(double value) {
  if (value >= -0x1p63 && value < 0x1p63 && value == trunc(value))
    return identity_integer((int64_t)value);
  struct identity identity = {IDENTITY_REAL, 0};
  memcpy(&identity.low, &value, sizeof value);
  return identity;
}

/* ---- long texts, and states ------------------------------------------------------------------ */

/* Returns 128 bits of the SHA-256 of the secret's key (unless `secret` is null) and the bytes. The
** result does not depend on the byte order of the machine. */
static struct identity long_hash(const struct secret *secret, const void *bytes, size_t size) {
  crypto_hash_sha256_state state;
  uint8_t digest[crypto_hash_sha256_BYTES];
  struct identity hash = {0, 0};
  crypto_hash_sha256_init(&state);
  if (secret)
    crypto_hash_sha256_update(&state, secret->bytes + 8 * SECRET_KEY,
                              8 * (SECRET_HASH - SECRET_KEY));
  crypto_hash_sha256_update(&state, bytes, size);
  crypto_hash_sha256_final(&state, digest);
  for (int i = 7; i >= 0; i--) {
    hash.kind = hash.kind << 8 | digest[i];
    hash.low = hash.low << 8 | digest[i + 8];
  }
  return hash;
}

/* ---- short texts ----------------------------------------------------------------------------- */

/* Multilinear hashing (Lemire and Kaser 2014, "Strongly universal string hashing is fast"). The
** words m_1, m_2, ... of a text give the top 128 bits of
**
**     H = k_0 + k_1 m_1 + k_2 m_2 + ...   modulo 2^192
**
** where the k_i are secret integers of 192 bits, stored in words of 64 bits. Let H and H' be the
** sums of two different texts that were chosen without knowledge of the secret. Because of k_0, H
** is uniform. The texts differ in some word m_i. The difference d of this word is 2^t times an odd
** number, with t <= 63. Given H and every other k_j, the product k_i d is uniform on the multiples
** of 2^t. The top 128 bits of H' are therefore uniform, given H. Any 126 of these bits are equal in
** H and H' with probability exactly 2^-126. */
struct multilinear {
  /* Words of H, each with its carries in the upper 64 bits: at most 100 terms overflow nothing. */
  uint128 sum[3];
};

static inline void multilinear_add(struct multilinear *hash, const struct secret *secret, int at,
                                   uint64_t word) {
  uint128 low = (uint128)secret_word(secret, at) * word;
  uint128 middle = (uint128)secret_word(secret, at + 1) * word;
  hash->sum[0] += (uint64_t)low;
  hash->sum[1] += (uint128)(uint64_t)(low >> 64) + (uint64_t)middle;
  hash->sum[2] += (uint64_t)(middle >> 64) + secret_word(secret, at + 2) * word;
}

static inline uint64_t word_of(const unsigned char *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* Makes a word of up to 7 bytes. Two different texts of the same size give different words. */
static inline uint64_t short_word(const unsigned char *bytes, size_t size) {
  uint32_t first, last;
  if (size >= 4) {
    memcpy(&first, bytes, sizeof first);
    memcpy(&last, bytes + size - 4, sizeof last);
    return (uint64_t)first << 32 | last;
  }
  return size ? (uint64_t)bytes[0] << 16 | (uint64_t)bytes[size / 2] << 8 | bytes[size - 1] : 0;
}

/* The first word of the hash is the size of the text. The last word holds the last 8 bytes of the
** text and may overlap the word before it. Texts of different sizes differ in the first word.
** Different texts of one size differ in a later word. */
static struct identity short_hash(const struct secret *secret, const unsigned char *bytes,
                                  size_t size) {
  int at = SECRET_HASH;
  struct multilinear hash = {
      {secret_word(secret, at), secret_word(secret, at + 1), secret_word(secret, at + 2)}};
  multilinear_add(&hash, secret, at += 3, size);
  for (size_t done = 8; done < size; done += 8)
    multilinear_add(&hash, secret, at += 3, word_of(bytes + done - 8));
  uint64_t last = size >= 8 ? word_of(bytes + size - 8) : short_word(bytes, size);
  multilinear_add(&hash, secret, at + 3, last);
  hash.sum[1] += hash.sum[0] >> 64;
  hash.sum[2] += hash.sum[1] >> 64;
  return (struct identity){(uint64_t)hash.sum[2], (uint64_t)hash.sum[1]};
}

/* ---- identities ------------------------------------------------------------------------------ */

/* Makes an identity of 126 bits of a hash and the two upper bits of `what`: HASHED for a value of a
** row and not for a name, TEXT for a text or a name and not for a blob. */
static struct identity hashed(const struct secret *secret, const void *bytes, size_t size,
                              uint64_t what) {
  struct identity hash = size > IDENTITY_SHORT || !secret ? long_hash(secret, bytes, size)
                                                          : short_hash(secret, bytes, size);
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
