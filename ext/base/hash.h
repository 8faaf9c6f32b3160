/* hash.h: computes the SHA-256 hash, in hexadecimal, of lines that the caller adds one by one. */
#ifndef DIFFUSE_BASE_HASH_H
#define DIFFUSE_BASE_HASH_H

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_SIZE 65

/* The value of a blob. The struct does not own the bytes. A null pointer stands for NULL. */
struct bytes {
  const void *at;
  int size;
};

struct digest {
  crypto_hash_sha256_state state;
  size_t gathered;
  char text[1024];
};

void digest_begin(struct digest *digest);
void digest_finish(struct digest *digest, char hash[HASH_SIZE]);

void digest_add(struct digest *digest, const char *bytes, size_t size);

/* Adds the letter `type` unless it is 0, the integer x in decimal, and the character `end`. */
void digest_typed(struct digest *digest, char type, int64_t x, char end);

/* Add one line: the bits of a double in hexadecimal, a text, or a blob in hexadecimal. A null
** pointer adds an empty line. */
void digest_bits(struct digest *digest, double x);
void digest_text(struct digest *digest, const char *text);
void digest_hexadecimal(struct digest *digest, struct bytes bytes);

/* Computes the hash of `size` bytes of text. */
void text_hash(const char *text, size_t size, char hash[HASH_SIZE]);

#endif
