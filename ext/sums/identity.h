/*
** identity.h: privacy units and group keys as identities of 128 bits.
**
** Equal numbers have one identity (1 and 1.0, 0.0 and -0.0), and so have all NULLs. Texts and blobs
** are compared byte for byte, whatever the collation of a column is. The identity of a text or blob
** is 126 bits of a hash under a secret. Each release has a new secret, which the people who choose
** the texts do not know:
**
**   up to 240 bytes: two given texts get the same identity with probability 2^-126, which is
**     proved in identity.c. Among n texts, whoever chose them, the probability that any two do is
**     at most n^2/2^127: 1e-20 for a billion;
**   longer: SHA-256 of the secret and the text. The probabilities are the same if SHA-256 behaves
**     like a random function;
**   in states (shard_state.h), which machines without a common secret must understand: SHA-256
**     without a secret. The probabilities are the same if nobody chooses the texts. A person who
**     can choose the names of units can find two that collide in about 2^63 trials. They would
**     count as one unit.
**
** The secret also prevents anybody from choosing texts that collide in a hash table.
*/
#ifndef DIFFUSE_SUMS_IDENTITY_H
#define DIFFUSE_SUMS_IDENTITY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "noise/lattice.h"

struct identity {
  uint64_t kind, low; /* kind 0: no identity, an empty slot */
};

/*
** The number of words of 64 bits: 3 for identity_mix(); 4 that precede a long text; and for a short
** text 3 for each of its words, 3 for its size, and 3 for the constant of its hash.
*/
#define IDENTITY_SHORT 240 /* bytes of a text that is hashed by sums of products */
#define SECRET_KEY     3
#define SECRET_HASH    7
#define SECRET_WORDS   (SECRET_HASH + 3 * (IDENTITY_SHORT / 8 + 2))
struct secret {
  unsigned char bytes[8 * SECRET_WORDS];
};

/* Draws a secret. Returns 1, or 0 when the system gave no random bytes. */
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
** The identity of a text or a blob. Without a secret (null) it is the same in every database, as
** states need it.
*/
struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text);

/* Returns whether 128 bits from another source can be the identity of a row's value. */
int identity_is_somebody(struct identity identity);

/*
** The identity of a name. It never equals the identity of a row's value, whatever the bytes of the
** name.
*/
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
** 64 well-mixed bits of an identity and a number, under the secret: a place in a table. The
** function folds a product of two words of 64 bits; the golden ratio spreads low bits upward.
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
