/* test_identity.c: tests the identities of units and keys. The comments of identity.c define the
** hash of a short text as a sum of products modulo 2^192, and prove a bound for this sum. The test
** computes the sum bit by bit and compares the hash with it, so the proof applies to the code. */
#include "check.h"

#include <sodium.h>
#include <string.h>

#include "sums/sums.h"

static struct secret secret;

/* ---- 192 bits, the long way ------------------------------------------------------------------ */

#define LIMBS 24 /* number of bytes; the least significant byte comes first */
struct wide {
  unsigned char limb[LIMBS];
};

/* Adds b to a. */
static void wide_add(struct wide *a, const struct wide *b) {
  unsigned carry = 0;
  for (int i = 0; i < LIMBS; i++) {
    carry += (unsigned)a->limb[i] + b->limb[i];
    a->limb[i] = (unsigned char)carry;
    carry >>= 8;
  }
}

/* Adds key * word to a, by doubling. */
static void wide_add_product(struct wide *a, struct wide key, uint64_t word) {
  for (; word; word >>= 1) {
    if (word & 1) wide_add(a, &key);
    struct wide same = key;
    wide_add(&key, &same);
  }
}

static struct wide wide_key(int index) {
  struct wide key;
  memcpy(key.limb, secret.bytes + 8 * SECRET_HASH + LIMBS * index, LIMBS);
  return key;
}

static uint64_t wide_word(const struct wide *a, int index) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | a->limb[8 * index + i];
  return word;
}

static uint64_t word_at(const unsigned char *bytes, size_t size) {
  uint64_t word = 0;
  for (size_t i = size; i-- > 0;) word = word << 8 | bytes[i];
  return word;
}

/* Returns the word of a text of fewer than 8 bytes. For 4 to 7 bytes, the word consists of the
** first four and the last four bytes. For 1 to 3 bytes, the word consists of the first, the middle
** and the last byte. */
static uint64_t short_word_of(const unsigned char *bytes, size_t size) {
  if (size >= 4) return word_at(bytes, 4) << 32 | word_at(bytes + size - 4, 4);
  if (size == 0) return 0;
  return (uint64_t)bytes[0] << 16 | (uint64_t)bytes[size / 2] << 8 | bytes[size - 1];
}

static struct identity expected(const unsigned char *bytes, size_t size, uint64_t what) {
  struct wide sum = wide_key(0);
  int key = 1;
  wide_add_product(&sum, wide_key(key++), size);
  for (size_t at = 0; at + 8 < size; at += 8)
    wide_add_product(&sum, wide_key(key++), word_at(bytes + at, 8));
  uint64_t last = size >= 8 ? word_at(bytes + size - 8, 8) : short_word_of(bytes, size);
  wide_add_product(&sum, wide_key(key), last);
  return (struct identity){what | wide_word(&sum, 2) >> 2, wide_word(&sum, 1)};
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define TEXT_KIND ((uint64_t)3 << 62)
#define BLOB_KIND ((uint64_t)1 << 63)
#define NAME_KIND ((uint64_t)1 << 62)

static void short_texts_are_sums_of_products(void) {
  unsigned char bytes[IDENTITY_SHORT];
  for (int round = 0; round < 40; round++) {
    CHECK(secret_draw(&secret) == 1, "no random bytes");
    /* Includes extreme values, so that every possible carry occurs. */
    if (round % 4 == 0) memset(secret.bytes, 0xff, sizeof secret.bytes);
    for (size_t size = 0; size <= sizeof bytes; size++) {
      randombytes_buf(bytes, sizeof bytes);
      if (round % 3 == 0) memset(bytes, 0xff, sizeof bytes);
      struct identity text = identity_bytes(&secret, bytes, size, 1);
      struct identity blob = identity_bytes(&secret, bytes, size, 0);
      CHECK(identity_same(text, expected(bytes, size, TEXT_KIND)), "text of %zu bytes", size);
      CHECK(identity_same(blob, expected(bytes, size, BLOB_KIND)), "blob of %zu bytes", size);
      CHECK(identity_is_somebody(text) && identity_is_somebody(blob), "nobody");
    }
  }
}

/* At every length, adding, removing or changing one byte changes the identity. */
static void every_byte_counts(void) {
  unsigned char bytes[IDENTITY_SHORT + 61];
  CHECK(secret_draw(&secret) == 1, "no random bytes");
  randombytes_buf(bytes, sizeof bytes);
  for (size_t size = 0; size < sizeof bytes; size++) {
    struct identity whole = identity_bytes(&secret, bytes, size, 1);
    CHECK(!identity_same(whole, identity_bytes(&secret, bytes, size + 1, 1)), "size %zu", size);
    for (size_t at = 0; at < size; at++) {
      bytes[at] ^= 1;
      CHECK(!identity_same(whole, identity_bytes(&secret, bytes, size, 1)), "%zu of %zu", at, size);
      bytes[at] ^= 1;
    }
  }
}

/* The test compares all pairs of 4096 texts. If the hash ignored half of its state, texts would
** collide in the low half or in the high half of the identity. */
static void both_halves_tell_texts_apart(void) {
  enum { TEXTS = 4096 };
  static struct identity seen[TEXTS];
  CHECK(secret_draw(&secret) == 1, "no random bytes");
  for (int i = 0; i < TEXTS; i++) {
    char text[24];
    int size = snprintf(text, sizeof text, "%08d%08d", i % 64, i / 64);
    seen[i] = identity_bytes(&secret, text, (size_t)size, 1);
  }
  for (int i = 0; i < TEXTS; i++) {
    for (int j = 0; j < i; j++) {
      CHECK(seen[i].low != seen[j].low && seen[i].kind != seen[j].kind, "%d and %d", i, j);
    }
  }
}

/* Secrets and kinds change the identity. Without a secret, a text always has the same identity. */
static void kinds_and_secrets(void) {
  struct secret other;
  char text[300];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  CHECK(secret_draw(&secret) == 1 && secret_draw(&other) == 1, "no random bytes");
  for (size_t size = 1; size < sizeof text; size += 59) {
    struct identity mine = identity_bytes(&secret, text, size, 1);
    CHECK(!identity_same(mine, identity_bytes(&other, text, size, 1)), "secret, %zu", size);
    CHECK(!identity_same(mine, identity_bytes(&secret, text, size, 0)), "blob, %zu", size);
    CHECK(!identity_same(mine, identity_bytes(0, text, size, 1)), "state, %zu", size);
  }
  CHECK(identity_name(&secret, "5").kind >> 62 == NAME_KIND >> 62, "a name is not a row's value");
  struct identity five =
      identity_bytes(0, "5", 1, 1); /* SHA-256("5") = ef2d127de37b942b aad06145e54b0c61... */
  CHECK(five.kind == (TEXT_KIND | UINT64_C(0x2b947be37d122def) >> 2), "states: first word");
  CHECK(five.low == UINT64_C(0x610c4be54561d0aa), "states: second word");
}

/* Two values are one unit exactly if SQLite calls them equal as keys. */
static void equal_keys_are_one_identity(void) {
  CHECK(secret_draw(&secret) == 1, "no random bytes");
  const struct {
    struct identity a, b;
    int are_one;
  } pairs[] = {
      {identity_integer(1), identity_real(1.0), 1},
      {identity_real(0.0), identity_real(-0.0), 1},
      {identity_integer(0), identity_real(-0.0), 1},
      {identity_null(), identity_null(), 1},
      {identity_integer(INT64_MIN), identity_real(-0x1p63), 1},
      {identity_real(0x1p62), identity_integer((int64_t)1 << 62), 1},
      {identity_real(INFINITY), identity_real(INFINITY), 1},
      {identity_real(0x1p63), identity_real(0x1p63), 1},
      {identity_bytes(&secret, 0, 0, 0), identity_bytes(&secret, "a", 0, 0), 1},
      {identity_integer(INT64_MAX), identity_real(0x1p63), 0},
      {identity_integer(INT64_MIN), identity_real(0x1p63), 0},
      {identity_integer(((int64_t)1 << 53) + 1), identity_real(0x1p53), 0},
      {identity_real(INFINITY), identity_real(-INFINITY), 0},
      {identity_integer(1), identity_bytes(&secret, "1", 1, 1), 0},
      {identity_integer(1), identity_bytes(&secret, "1", 1, 0), 0},
      {identity_bytes(&secret, "", 0, 1), identity_null(), 0},
      {identity_integer(0), identity_null(), 0},
      {identity_real(0.0), identity_real(5e-324), 0},
      {identity_real(0.5), identity_integer((int64_t)0x3fe0000000000000), 0}, /* the bits of 0.5 */
  };
  for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++)
    CHECK(identity_same(pairs[i].a, pairs[i].b) == pairs[i].are_one, "pair %d", i);
}

/* The names in a book of allowances are digests of identities. Two names may have the same last 8
** bytes. A name that comes twice is refused. */
static void allowances_tell_names_apart(void) {
  static const unsigned char key[ALLOWANCE_SECRET];
  for (int equal = 0; equal < 2; equal++) {
    unsigned char bytes[2 * ALLOWANCE_BYTES] = {equal ? 0 : 1};
    struct allowances *book = allowances_open(key, 1000);
    CHECK(book && allowances_load(book, bytes, sizeof bytes) == !equal, "equal: %d", equal);
    allowances_close(book);
  }
}

int main(void) {
  if (sodium_init() < 0) return 1; /* needed by randombytes_buf() */
  RUN(short_texts_are_sums_of_products);
  RUN(every_byte_counts);
  RUN(both_halves_tell_texts_apart);
  RUN(kinds_and_secrets);
  RUN(equal_keys_are_one_identity);
  RUN(allowances_tell_names_apart);
  FINISH();
}
