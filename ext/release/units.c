/*
** units.c: see units.h.
**
** The table: open addressing with linear probing over 32-byte slots,
**
**     | identity 16 | total 16 |
**
** Where a slot lies is decided by a mix of the identity with the table's secret.
**
** A table of a million units does not fit a cache. Rows therefore wait in a batch of 64 whose slots
** are prefetched; flushing the batch finds them near.
*/
#include "release/units.h"

#include <stdlib.h>

#include "noise/entropy.h"
#include "release/memory.h"

#define BATCH       64
#define FIRST_SLOTS 256

struct slot {
  struct identity unit;
  int128 total;
};

struct pending {
  struct identity unit;
  uint64_t place; /* where probing starts, before masking */
  int128 steps;
};

struct units {
  struct slot *slots;
  uint64_t mask; /* number of slots - 1 */
  uint64_t used;
  int waiting;
  int failed; /* memory ran out and rows were lost: sticks */
  struct pending batch[BATCH];
  struct secret secret;
};

/* ---- the table ----------------------------------------------------------------------------------- */

static struct slot *find(struct units *units, struct identity unit, uint64_t place) {
  struct slot *slot = &units->slots[place & units->mask];
  while (slot->unit.kind != IDENTITY_NOBODY && !identity_same(slot->unit, unit)) {
    place++;
    slot = &units->slots[place & units->mask];
  }
  return slot;
}

static int grow(struct units *units) {
  uint64_t old = units->slots ? units->mask + 1 : 0;
  uint64_t slots = old ? old * 2 : FIRST_SLOTS;
  struct slot *before = units->slots, *fresh = memory_table(slots * sizeof *fresh);
  if (!fresh) return -1;
  units->slots = fresh;
  units->mask = slots - 1;
  for (uint64_t i = 0; i < old; i++) {
    if (before[i].unit.kind != IDENTITY_NOBODY)
      *find(units, before[i].unit, identity_mix(&units->secret, before[i].unit, 0)) = before[i];
  }
  free(before);
  return 0;
}

/* Empties the batch into the table, which stays at most three quarters full. */
static int flush(struct units *units) {
  while ((units->used + BATCH) * 4 > (units->mask + 1) * 3) {
    if (grow(units)) {
      units->failed = 1;
      units->waiting = 0;
      return -1;
    }
  }
  for (int i = 0; i < units->waiting; i++) {
    const struct pending *pending = &units->batch[i];
    struct slot *slot = find(units, pending->unit, pending->place);
    units->used += slot->unit.kind == IDENTITY_NOBODY;
    slot->unit = pending->unit;
    slot->total += pending->steps;
  }
  units->waiting = 0;
  return 0;
}

int accumulate_unit(struct accumulator *accumulator, struct identity unit, double value) {
  struct units *units = accumulator->units;
  struct pending *pending = &units->batch[units->waiting++];
  pending->unit = unit;
  pending->place = identity_mix(&units->secret, unit, 0);
  pending->steps = fine_steps(value, accumulator->bounds.scale);
  __builtin_prefetch(&units->slots[pending->place & units->mask], 1);
  return units->waiting == BATCH ? flush(units) : 0;
}

int accumulate_steps(struct accumulator *accumulator, struct identity unit, int128 steps) {
  struct units *units = accumulator->units;
  if (flush(units)) return -1;
  struct slot *slot = find(units, unit, identity_mix(&units->secret, unit, 0));
  units->used += slot->unit.kind == IDENTITY_NOBODY;
  slot->unit = unit;
  slot->total = lattice_add(slot->total, steps);
  return 0;
}

/* ---- accumulators -------------------------------------------------------------------------------- */

int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit) {
  *accumulator = (struct accumulator){*bounds, 0, 0};
  if (!by_unit) return 0;
  struct units *units = calloc(1, sizeof *units);
  if (units && !secret_draw(&units->secret) && !grow(units)) {
    accumulator->units = units;
    return 0;
  }
  free(units);
  return -1;
}

void accumulator_close(struct accumulator *accumulator) {
  if (accumulator->units) {
    free(accumulator->units->slots);
    entropy_wipe(&accumulator->units->secret, sizeof accumulator->units->secret);
  }
  free(accumulator->units);
  *accumulator = (struct accumulator){{0, 0, 0, 0, 0}, 0, 0};
}

const struct secret *accumulator_secret(const struct accumulator *accumulator) {
  return &accumulator->units->secret;
}

void accumulate_total(struct accumulator *accumulator, int128 total) {
  accumulator->total = lattice_add(accumulator->total, total);
}

int accumulator_records(struct accumulator *accumulator, take_record *take, void *context) {
  struct units *units = accumulator->units;
  if (flush(units) || units->failed) return -1;
  for (uint64_t i = 0; i <= units->mask; i++) {
    const struct slot *slot = &units->slots[i];
    if (slot->unit.kind != IDENTITY_NOBODY && take(context, slot->unit, 0, &slot->total)) return -1;
  }
  return 0;
}

int accumulator_total(struct accumulator *accumulator, int128 *total) {
  struct units *units = accumulator->units;
  *total = accumulator->total;
  if (!units) return 0;
  if (flush(units) || units->failed) return -1;
  for (uint64_t i = 0; i <= units->mask; i++) {
    if (units->slots[i].unit.kind != IDENTITY_NOBODY) /* U1 */
      *total += lattice_clamp(units->slots[i].total, accumulator->bounds.low_steps,
                              accumulator->bounds.high_steps);
  }
  return 0;
}
