/* little_endian.h: reads little-endian numbers at any address. */
#ifndef DIFFUSE_BASE_LITTLE_ENDIAN_H
#define DIFFUSE_BASE_LITTLE_ENDIAN_H

#include <stdint.h>
#include <string.h>

/* Compilers turn this expression into one instruction that loads four bytes. */
static inline uint32_t little_endian(const unsigned char *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

static inline double binary32(const unsigned char *bytes) {
  uint32_t bits = little_endian(bytes);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline double binary64(const unsigned char *bytes) {
  uint64_t bits = (uint64_t)little_endian(bytes + 4) << 32 | little_endian(bytes);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif
