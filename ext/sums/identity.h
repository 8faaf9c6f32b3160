/* identity.h: privacy units and group keys as identities of 128 bits.
**
** Equal numbers share one identity (1 and 1.0, 0.0 and -0.0). All NULLs share one identity too.
** Texts and blobs are compared byte for byte, whatever the collation of a column is. The identity
** of a text or blob contains 126 bits of a hash with a secret. Each release draws a new secret,
** which is unknown to anybody who chooses texts. The method of hashing depends on the length of the
** text:
**
**   up to 240 bytes: two given texts get the same identity with probability 2^-126 (the proof is in
**     identity.c). Among n texts, whoever chose them, the probability that any two texts get the
**     same identity is at most n^2/2^127. For a billion texts this is below 1e-20;
**   longer: SHA-256 of the secret and the text. The probabilities are the same if SHA-256 behaves
**     like a random function;
**   in states (shard_state.h): SHA-256 without a secret, because machines that share no secret must
**     compute the same identities. The probabilities are the same if nobody chooses the texts on
**     purpose. A person who can choose the names of units can find two names with one identity in
**     about 2^63 trials. These two units would then count as one unit.
**
** The secret also prevents anybody from choosing texts that collide in a hash table. */
#ifndef DIFFUSE_SUMS_IDENTITY_H
#define DIFFUSE_SUMS_IDENTITY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/lattice.h"

struct identity {
  uint64_t kind, low; /* kind 0 marks an empty slot of a table */
};

/* The words of 64 bits of a secret: 3 for identity_mix(), 4 that are hashed before a long text, and
** for the hash of a short text 3 for each of its words, for its size and for the constant k_0
** (identity.c). */
#define IDENTITY_SHORT 240 /* longest text, in bytes, that is hashed by sums of products */
#define SECRET_KEY     3
#define SECRET_HASH    7
#define SECRET_WORDS   (SECRET_HASH + 3 * (IDENTITY_SHORT / 8 + 2))
struct secret {
  unsigned char bytes[8 * SECRET_WORDS];
};

/* Draws a secret. Returns 1, or 0 if the system provides no random bytes. */
int secret_draw(struct secret *secret);

/* The kinds of identities that are not hashes. */
enum { IDENTITY_NOBODY, IDENTITY_INTEGER, IDENTITY_REAL, IDENTITY_NULL };

static inline struct identity identity_null(void) {
  return (struct identity){IDENTITY_NULL, 0};
}

static inline struct identity identity_integer(int64_t value) {
  return (struct identity){IDENTITY_INTEGER, (uint64_t)value};
}

struct identity identity_real(double value);
/* Returns the identity of a text or a blob. If `secret` is null, the identity is the same in every
** database. Shard states need such identities. */
struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text);

/* Returns whether 128 bits that were read from a state can be the identity of a row's value. */
int identity_is_somebody(struct identity identity);

/* Returns the identity of a name. The result never equals the identity of a row's value, whatever
** the bytes of the name are. */
struct identity identity_name(const struct secret *secret, const char *name);

static inline int identity_same(struct identity a, struct identity b) {
  return a.kind == b.kind && a.low == b.low;
}

static inline uint64_t secret_word(const struct secret *secret, int at) {
  uint64_t word;
  memcpy(&word, secret->bytes + (size_t)8 * (size_t)at, sizeof word);
  return word;
}

/* Returns a place in a hash table: 64 bits that depend on an identity, a number and the secret. The
** two halves of a product of two words are combined, and multiplied by a constant from the golden
** ratio, so that low bits also affect high bits. */
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
