/* units.c: see units.h. */
#include "release/units.h"

#include <stdlib.h>

#include "noise/entropy.h"

int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit) {
  *accumulator = (struct accumulator){*bounds, 0, 0};
  if (!by_unit) return 0;
  struct units *units = accumulator->units = calloc(1, sizeof *units);
  if (units && !secret_draw(&units->secret) && !table_open(&units->integers, &units->secret, 1) &&
      !table_open(&units->others, &units->secret, 0) &&
      (units->carried = records_open(&units->secret, 1, 0)) != 0)
    return 0;
  accumulator_close(accumulator);
  return -1;
}

void accumulator_close(struct accumulator *accumulator) {
  struct units *units = accumulator->units;
  if (units) {
    table_close(&units->integers);
    table_close(&units->others);
    records_close(units->carried);
    entropy_wipe(&units->secret, sizeof units->secret);
  }
  free(units);
  *accumulator = (struct accumulator){{0, 0, 0, 0, 0}, 0, 0};
}

const struct secret *accumulator_secret(const struct accumulator *accumulator) {
  return &accumulator->units->secret;
}

/* ---- contributions --------------------------------------------------------------------------- */

/* The total of a unit, or a part of it, to where there is room for more. */
static int carry(void *context, struct identity unit, int64_t total) {
  struct units *units = context;
  int128 steps = total;
  return records_add(units->carried, unit, 0, &steps);
}

int units_flush(struct units *units, struct hash_table *table) {
  return table_flush(table, carry, units);
}

int accumulate_steps(struct accumulator *accumulator, struct identity unit, int128 steps) {
  struct units *units = accumulator->units;
  struct hash_table *table = unit.kind == IDENTITY_INTEGER ? &units->integers : &units->others;
  if (steps > TABLE_MOST || steps < -TABLE_MOST)
    return records_add(units->carried, unit, 0, &steps);
  return table_add(table, unit, (int64_t)steps) ? units_flush(units, table) : 0;
}

int accumulate_large(struct accumulator *accumulator, struct identity unit, double value) {
  return accumulate_steps(accumulator, unit, fine_steps(value, accumulator->bounds.scale));
}

void accumulate_total(struct accumulator *accumulator, int128 total) {
  accumulator->total = lattice_add(accumulator->total, total);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* Who takes the total of every unit. */
struct taker {
  take_record *take;
  void *context;
};

static int take_narrow(void *context, struct identity unit, int64_t total) {
  const struct taker *taker = context;
  int128 steps = total;
  return taker->take(taker->context, unit, 0, &steps);
}

/* Of a table, unless something has been carried: then every unit is to be in one place. */
static int take_table(struct units *units, struct hash_table *table, struct taker *taker) {
  if (records_are_none(units->carried)) return table_each(table, take_narrow, taker);
  int failed = table_each(table, carry, units);
  table_clear(table);
  return failed;
}

int accumulator_records(struct accumulator *accumulator, take_record *take, void *context) {
  struct units *units = accumulator->units;
  struct taker taker = {take, context};
  return units_flush(units, &units->integers) || units_flush(units, &units->others) ||
                 take_table(units, &units->integers, &taker) ||
                 take_table(units, &units->others, &taker) ||
                 records_each(units->carried, take, context)
             ? -1
             : 0;
}

/* Bounds the total of a unit and adds it to the others (U1). */
static int take_total(void *context, struct identity unit, uint32_t cell, const int128 *steps) {
  struct accumulator *sum = context;
  (void)unit;
  (void)cell;
  sum->total += lattice_clamp(*steps, sum->bounds.low_steps, sum->bounds.high_steps);
  return 0;
}

int accumulator_total(struct accumulator *accumulator, int128 *total) {
  struct accumulator sum = *accumulator;
  int failed = accumulator->units ? accumulator_records(accumulator, take_total, &sum) : 0;
  *total = sum.total;
  return failed;
}
