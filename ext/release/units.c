/* units.c: see units.h. */
#include "release/units.h"

#include <stdlib.h>

#include "noise/entropy.h"

int units_flush(struct units *units) {
  int count = units->count;
  units->count = 0;
  units->failed |= table_reserve(&units->table);
  if (units->failed) return -1;
  for (int i = 0; i < count; i++) {
    const struct waiting *row = &units->batch[i];
    struct slot *slot = table_find(&units->table, row->unit, row->place);
    if (slot->key.kind == IDENTITY_NOBODY) table_enter(&units->table, slot, row->unit, row->place);
    slot->total += row->steps;
  }
  return 0;
}

int accumulate_steps(struct accumulator *accumulator, struct identity unit, int128 steps) {
  struct units *units = accumulator->units;
  if (units_flush(units) || table_reserve(&units->table)) return -1;
  uint64_t place = table_place(&units->table, unit, 0);
  struct slot *slot = table_find(&units->table, unit, place);
  if (slot->key.kind == IDENTITY_NOBODY) table_enter(&units->table, slot, unit, place);
  slot->total = lattice_add(slot->total, steps);
  return 0;
}

int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit) {
  *accumulator = (struct accumulator){*bounds, 0, 0};
  if (!by_unit) return 0;
  struct units *units = calloc(1, sizeof *units);
  if (units && !secret_draw(&units->secret) && !table_open(&units->table, &units->secret, 0)) {
    accumulator->units = units;
    return 0;
  }
  free(units);
  return -1;
}

void accumulator_close(struct accumulator *accumulator) {
  if (accumulator->units) {
    table_close(&accumulator->units->table);
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
  if (units_flush(units)) return -1;
  uint64_t at = 0;
  for (const struct slot *slot; (slot = table_next(&units->table, &at)) != 0;) {
    if (take(context, slot->key, 0, &slot->total)) return -1;
  }
  return 0;
}

int accumulator_total(struct accumulator *accumulator, int128 *total) {
  struct units *units = accumulator->units;
  *total = accumulator->total;
  if (!units) return 0;
  if (units_flush(units)) return -1;
  uint64_t at = 0;
  for (const struct slot *slot; (slot = table_next(&units->table, &at)) != 0;) /* U1 */
    *total +=
        lattice_clamp(slot->total, accumulator->bounds.low_steps, accumulator->bounds.high_steps);
  return 0;
}
