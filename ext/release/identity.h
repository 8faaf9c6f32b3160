/*
** identity.h: who is who: privacy units and group keys as 128 bits.
**
** Numbers that are equal are one (1 and 1.0, 0.0 and -0.0), texts and blobs byte for byte (whatever
** the collation of a column says), NULLs together. Texts and blobs are 126 bits of a hash under a
** secret of their own for each release: two of n are taken for one with probability n^2/2^127, for
** a billion 1e-20, and nobody can choose texts that pile up in a table.
*/
#ifndef DIFFUSE_RELEASE_IDENTITY_H
#define DIFFUSE_RELEASE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/lattice.h"

struct identity {
  uint64_t kind, low; /* kind 0 is nobody: an empty slot */
};

#define IDENTITY_SECRET_SIZE 136
struct secret {
  unsigned char bytes[IDENTITY_SECRET_SIZE];
};

/* Draws a secret. Returns 0, or -1 when the system gave no random bytes. */
int secret_draw(struct secret *secret);

/* Kinds of an identity that is not hashed. */
enum { IDENTITY_NOBODY, IDENTITY_INTEGER, IDENTITY_REAL, IDENTITY_NULL };

static inline struct identity identity_null(void) {
  return (struct identity){IDENTITY_NULL, 0};
}

static inline struct identity identity_integer(int64_t value) {
  return (struct identity){IDENTITY_INTEGER, (uint64_t)value};
}

struct identity identity_real(double value);
/*
** Up to 240 bytes by XXH3; longer ones, for which its sums are linear in part, by SHA-256. Without
** a secret (null) all by SHA-256: an identity that is the same in every database, for states
** (state.h).
*/
struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text);

/* Whether 128 bits that came from elsewhere can be the identity of a row's value. */
int identity_is_somebody(struct identity identity);

/* The identity of a name: never that of a row's value, whatever its bytes. */
struct identity identity_name(const struct secret *secret, const char *name);

static inline int identity_same(struct identity a, struct identity b) {
  return a.kind == b.kind && a.low == b.low;
}

static inline uint64_t secret_word(const struct secret *secret, int at) {
  uint64_t word;
  memcpy(&word, secret->bytes + (size_t)8 * (size_t)at, sizeof word);
  return word;
}

/*
** 64 well-mixed bits of an identity and a number, under the secret: a place in a table. A
** multiplication of 64 by 64 bits, folded; the golden ratio spreads low bits upward.
*/
static inline uint64_t identity_mix(const struct secret *secret, struct identity identity,
                                    uint64_t number) {
  uint64_t a = identity.low ^ secret_word(secret, 0);
  uint64_t b = identity.kind ^ secret_word(secret, 1) ^ number * secret_word(secret, 2);
  uint128 product = (uint128)a * (b | 1);
  uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
  mixed *= 0x9e3779b97f4a7c15u;
  return mixed ^ (mixed >> 32);
}

#endif
