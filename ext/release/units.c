/*
** units.c: see units.h.
**
** The table: open addressing with linear probing over 32-byte slots,
**
**     | kind 8 | key 8 | total 16 |      kind 0 is an empty slot
**
** A unit is identified by 128 bits: (INTEGER, value), (REAL, bits), (NULL, 0), or, for text and
** blobs, a 128-bit hash under a secret drawn for each table; two texts that collide (one chance in
** 2^127 a pair) would be one unit, which errs on the side of privacy. Where a slot lies is decided
** by a mix with the same secret, so that nobody can choose units that pile up.
**
** A table of a million units does not fit a cache. Rows therefore wait in a batch of 64 whose slots
** are prefetched; flushing the batch finds them near.
*/
#include "release/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "noise/entropy.h"

#define BATCH       64
#define FIRST_SLOTS 256
#define SECRET_SIZE XXH3_SECRET_SIZE_MIN

enum { EMPTY, INTEGER, REAL, NULLS, TEXT, BLOB };
#define HASHED ((uint64_t)1 << 63) /* set in the kind of a hashed key, beside 62 bits of the hash */

struct key {
  uint64_t kind, low;
};

struct slot {
  struct key key;
  int128 total;
};

struct pending {
  struct key key;
  uint64_t place; /* where probing starts, before masking */
  int128 steps;
};

struct units {
  struct slot *slots;
  uint64_t mask; /* number of slots - 1 */
  uint64_t used;
  int waiting;
  struct pending batch[BATCH];
  unsigned char secret[SECRET_SIZE];
};

/* ---- values -------------------------------------------------------------------------------------- */

/* A value in fine steps, saturated at +-2^LATTICE_ROW_BITS (U4). */
static int128 steps_of(double value, double scale) {
  double x = value * scale;
  if (fabs(x) < 0x1p62) return llrint(x);
  int128 limit = (int128)1 << LATTICE_ROW_BITS;
  if (x >= 0x1p90) return limit;
  if (x <= -0x1p90) return -limit;
  return x == x ? (int128)x : 0; /* doubles of this size are integers already */
}

/* ---- the table ----------------------------------------------------------------------------------- */

static uint64_t place_of(const struct units *units, struct key key) {
  uint64_t seed[2];
  memcpy(seed, units->secret, sizeof seed);
  uint128 product = (uint128)(key.low ^ seed[0]) * ((key.kind ^ seed[1]) | 1);
  uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
  mixed *= 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio: spreads low bits upward */
  return mixed ^ (mixed >> 32);
}

static struct slot *find(struct units *units, struct key key, uint64_t place) {
  struct slot *slot = &units->slots[place & units->mask];
  while (slot->key.kind != EMPTY && (slot->key.kind != key.kind || slot->key.low != key.low)) {
    place++;
    slot = &units->slots[place & units->mask];
  }
  return slot;
}

static int grow(struct units *units) {
  uint64_t old = units->slots ? units->mask + 1 : 0;
  uint64_t slots = old ? old * 2 : FIRST_SLOTS;
  struct slot *before = units->slots, *fresh = calloc(slots, sizeof *fresh);
  if (!fresh) return -1;
  units->slots = fresh;
  units->mask = slots - 1;
  for (uint64_t i = 0; i < old; i++) {
    if (before[i].key.kind != EMPTY)
      *find(units, before[i].key, place_of(units, before[i].key)) = before[i];
  }
  free(before);
  return 0;
}

/* Empties the batch into the table, which stays at most three quarters full. */
static int flush(struct units *units) {
  while ((units->used + BATCH) * 4 > (units->mask + 1) * 3) {
    if (grow(units)) return -1;
  }
  for (int i = 0; i < units->waiting; i++) {
    const struct pending *pending = &units->batch[i];
    struct slot *slot = find(units, pending->key, pending->place);
    units->used += slot->key.kind == EMPTY;
    slot->key = pending->key;
    slot->total += pending->steps;
  }
  units->waiting = 0;
  return 0;
}

static int add(struct accumulator *accumulator, struct key key, double value) {
  struct units *units = accumulator->units;
  struct pending *pending = &units->batch[units->waiting++];
  pending->key = key;
  pending->place = place_of(units, key);
  pending->steps = steps_of(value, accumulator->bounds.scale);
  __builtin_prefetch(&units->slots[pending->place & units->mask], 1);
  return units->waiting == BATCH ? flush(units) : 0;
}

/* ---- units --------------------------------------------------------------------------------------- */

int accumulate_null(struct accumulator *accumulator, double value) {
  return add(accumulator, (struct key){NULLS, 0}, value);
}

int accumulate_integer(struct accumulator *accumulator, int64_t unit, double value) {
  return add(accumulator, (struct key){INTEGER, (uint64_t)unit}, value);
}

int accumulate_real(struct accumulator *accumulator, double unit, double value) {
  if (unit >= -0x1p63 && unit < 0x1p63 && unit == trunc(unit)) /* U3 */
    return accumulate_integer(accumulator, (int64_t)unit, value);
  struct key key = {REAL, 0};
  memcpy(&key.low, &unit, sizeof unit);
  return add(accumulator, key, value);
}

int accumulate_bytes(struct accumulator *accumulator, const void *unit, size_t size, int is_text,
                     double value) {
  const struct units *units = accumulator->units;
  XXH128_hash_t hash =
      XXH3_128bits_withSecret(size ? unit : "", size, units->secret, sizeof units->secret);
  uint64_t text = is_text ? (uint64_t)1 << 62 : 0; /* text and blobs are different units */
  return add(accumulator, (struct key){HASHED | text | hash.high64 >> 2, hash.low64}, value);
}

/* ---- accumulators -------------------------------------------------------------------------------- */

int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit) {
  *accumulator = (struct accumulator){*bounds, 0, 0};
  if (!by_unit) return 0;
  struct units *units = calloc(1, sizeof *units);
  if (units && !entropy_fill(units->secret, sizeof units->secret) && !grow(units)) {
    accumulator->units = units;
    return 0;
  }
  free(units);
  return -1;
}

void accumulator_close(struct accumulator *accumulator) {
  if (accumulator->units) free(accumulator->units->slots);
  free(accumulator->units);
  *accumulator = (struct accumulator){{0, 0, 0, 0, 0}, 0, 0};
}

int accumulator_total(struct accumulator *accumulator, int128 *total) {
  struct units *units = accumulator->units;
  *total = accumulator->total;
  if (!units) return 0;
  if (flush(units)) return -1;
  for (uint64_t i = 0; i <= units->mask; i++) {
    if (units->slots[i].key.kind != EMPTY) /* U1 */
      *total += lattice_clamp(units->slots[i].total, accumulator->bounds.low_steps,
                              accumulator->bounds.high_steps);
  }
  return 0;
}
