/* random.h: a fixed sequence of pseudorandom numbers for tests (xorshift64). */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <math.h>
#include <stdint.h>

/* A test that needs the same sequence twice saves and restores this state. */
static uint64_t random_state = 0x2545f4914f6cdd1du;

static inline uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

/* Returns a uniform number in [0, 1). */
static inline double uniform(void) {
  return (double)(random_bits() >> 11) * 0x1p-53;
}

/* Returns a standard normal number (Box and Muller). */
static inline double normal(void) {
  return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

#endif
