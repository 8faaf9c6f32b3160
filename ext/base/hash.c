/* hash.c: SHA-256 of lines and rows. The code first collects the bytes in a buffer, because most
** columns are short and there are many of them.
** Tests: tests/ledger/test_edits.py */
#include "base/hash.h"

#include <string.h>

static void flush(struct digest *digest) {
  crypto_hash_sha256_update(&digest->state, (const unsigned char *)digest->text, digest->gathered);
  digest->gathered = 0;
}

void digest_add(struct digest *digest, const char *text, size_t size) {
  if (size > sizeof digest->text - digest->gathered) flush(digest);
  if (size > sizeof digest->text) {
    crypto_hash_sha256_update(&digest->state, (const unsigned char *)text, size);
  } else if (size) {
    memcpy(digest->text + digest->gathered, text, size);
    digest->gathered += size;
  }
}

void digest_typed(struct digest *digest, char type, int64_t x, char end) {
  char line[24], *at = line + sizeof line;
  uint64_t left = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  *--at = end;
  do {
    *--at = (char)('0' + left % 10);
    left /= 10;
  } while (left);
  if (x < 0) *--at = '-';
  if (type) *--at = type;
  digest_add(digest, at, (size_t)(line + sizeof line - at));
}

void digest_bits(struct digest *digest, double x) {
  char line[17];
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  for (int i = 0; i < 16; i++) line[i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 15];
  line[16] = '\n';
  digest_add(digest, line, sizeof line);
}

void digest_text(struct digest *digest, const char *text) {
  digest_add(digest, text ? text : "", text ? strlen(text) : 0);
  digest_add(digest, "\n", 1);
}

void digest_hexadecimal(struct digest *digest, struct bytes bytes) {
  const unsigned char *at = bytes.at;
  for (int i = 0; i < bytes.size; i++) {
    char pair[2] = {"0123456789abcdef"[at[i] >> 4], "0123456789abcdef"[at[i] & 15]};
    digest_add(digest, pair, sizeof pair);
  }
  digest_add(digest, "\n", 1);
}

void digest_begin(struct digest *digest) {
  crypto_hash_sha256_init(&digest->state);
  digest->gathered = 0;
}

void digest_finish(struct digest *digest, char hash[HASH_SIZE]) {
  uint8_t bytes[crypto_hash_sha256_BYTES];
  flush(digest);
  crypto_hash_sha256_final(&digest->state, bytes);
  sodium_bin2hex(hash, HASH_SIZE, bytes, sizeof bytes);
}

void text_hash(const char *text, size_t size, char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  digest_add(&digest, text, size);
  digest_finish(&digest, hash);
}
