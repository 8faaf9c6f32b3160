/* scalar_sum.c: see sums.h. Tests: tests/sums/test_scalar_sum.c */
#include "sums/sums.h"

#include <stdlib.h>

#include "noise/noise.h"
#include "sums/internal.h"

int scalar_sum_open(struct scalar_sum *accumulator, const struct bounds *bounds, int by_unit,
                    const struct secret *secret) {
  *accumulator = (struct scalar_sum){.bounds = *bounds};
  if (!by_unit) return 1;
  struct units *units = accumulator->units = calloc(1, sizeof *units);
  if (units && secret) units->secret = *secret;
  if (units && (secret || secret_draw(&units->secret)) &&
      unit_table_open(&units->integers, &units->secret, 1) &&
      unit_table_open(&units->others, &units->secret, 0))
    return 1;
  scalar_sum_close(accumulator);
  return 0;
}

void scalar_sum_forget_units(struct scalar_sum *accumulator) {
  struct units *units = accumulator->units;
  if (units) {
    unit_table_close(&units->integers);
    unit_table_close(&units->others);
    if (units->carried) partitioned_sums_close(units->carried);
    entropy_wipe(&units->secret, sizeof units->secret);
  }
  free(units);
  accumulator->units = 0;
}

void scalar_sum_close(struct scalar_sum *accumulator) {
  scalar_sum_forget_units(accumulator);
  *accumulator = (struct scalar_sum){.total = 0};
}

const struct secret *scalar_sum_secret(const struct scalar_sum *accumulator) {
  return &accumulator->units->secret;
}

/* ---- contributions --------------------------------------------------------------------------- */

/* Adds a part of the total of a unit to units->carried, which the first such part opens. */
static int carry_wide(struct units *units, struct identity unit, int128 steps) {
  if (!units->carried) units->carried = partitioned_sums_open(&units->secret, 1, 0);
  return units->carried && partitioned_sums_add(units->carried, unit, 0, &steps);
}

static int carry(void *context, struct identity unit, int64_t total) {
  return carry_wide(context, unit, total);
}

int units_flush(struct units *units, struct unit_table *table) {
  return unit_table_flush(table, carry, units);
}

int scalar_sum_add_steps(struct scalar_sum *accumulator, struct identity unit, int128 steps) {
  struct units *units = accumulator->units;
  struct unit_table *table = unit.kind == IDENTITY_INTEGER ? &units->integers : &units->others;
  if (steps > TABLE_MOST || steps < -TABLE_MOST)
    return carry_wide(units, unit, steps);
  return unit_table_add(table, unit, (int64_t)steps) ? units_flush(units, table) : 1;
}

int scalar_sum_add_large(struct scalar_sum *accumulator, struct identity unit, double value) {
  return scalar_sum_add_steps(accumulator, unit, fine_steps(value, accumulator->bounds.scale));
}

void scalar_sum_add_total(struct scalar_sum *accumulator, int128 total) {
  accumulator->total = lattice_add(accumulator->total, total);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* The caller's function that receives the total of every unit, and the context for this
** function. */
struct taker {
  take_record *take;
  void *context;
};

static int take_narrow(void *context, struct identity unit, int64_t total) {
  const struct taker *taker = context;
  int128 steps = total;
  return taker->take(taker->context, unit, 0, &steps);
}

/* Calls the receiver for every total of a table. If there are carried totals, the function
** instead moves all totals of the table to units->carried, so that each unit has only one total. */
static int take_table(struct units *units, struct unit_table *table, struct taker *taker) {
  if (!units->carried) return unit_table_each(table, take_narrow, taker);
  int is_carried = unit_table_each(table, carry, units);
  unit_table_clear(table);
  return is_carried;
}

int scalar_sum_records(struct scalar_sum *accumulator, take_record *take, void *context) {
  struct units *units = accumulator->units;
  struct taker taker = {take, context};
  return units_flush(units, &units->integers) && units_flush(units, &units->others) &&
         take_table(units, &units->integers, &taker) && take_table(units, &units->others, &taker) &&
         (!units->carried || partitioned_sums_each(units->carried, take, context));
}

/* The bounded total of a unit, which waits until the processor has fetched its household. */
#define LATE_TOTALS 32
struct late_total {
  struct identity unit;
  int128 bounded;
};

/* The sum of all units, and with households the sum of each of them. */
struct totals_of {
  struct scalar_sum sum;
  int128 *shared;
  struct partitioned_sums *tallies; /* of the households (layout.h), with the option diagnose */
  struct late_total late[LATE_TOTALS];
  int late_count;
};

/* Adds the waiting totals to the sums of their households, or to the sum of all units. */
static void add_late(struct totals_of *totals) {
  for (int i = 0; i < totals->late_count; i++) {
    int64_t household = households_find(totals->sum.households, totals->late[i].unit);
    *(household == HOUSEHOLD_NONE ? &totals->sum.total : &totals->shared[household]) +=
        totals->late[i].bounded;
  }
  totals->late_count = 0;
}

/* Adds a unit to the tally. Returns 0 when out of memory. */
static int note_unit(struct totals_of *totals, struct identity unit, int128 steps, int128 bounded) {
  struct scalar_sum *sum = &totals->sum;
  const struct ladder *ladder = &sum->bounds.ladder;
  double before = 0, after = 0;
  if (ladder->most > 0) { /* the conversions take time */
    before = (double)lattice_magnitude(steps);
    after = (double)lattice_magnitude(bounded);
  }
  int64_t household = totals->tallies ? households_find(sum->households, unit) : HOUSEHOLD_NONE;
  return tally_note(&sum->tally, totals->tallies, household, ladder, bounded != steps, before,
                    after);
}

/* Bounds the total of a unit (U1), and adds it to the sum of its household or of all units. */
static int take_total(void *context, struct identity unit, uint32_t cell, const int128 *steps) {
  struct totals_of *totals = context;
  struct scalar_sum *sum = &totals->sum;
  (void)cell;
  int128 bounded = lattice_clamp(*steps, sum->bounds.low_steps, sum->bounds.high_steps);
  if (sum->bounds.ladder.steps && !note_unit(totals, unit, *steps, bounded)) return 0;
  if (!totals->shared) {
    sum->total += bounded;
    return 1;
  }
  households_expect(sum->households, unit);
  totals->late[totals->late_count++] = (struct late_total){unit, bounded};
  if (totals->late_count == LATE_TOTALS) add_late(totals);
  return 1;
}

/* Bounds the sums of the households and adds them to the sum of all units (U4). */
static void add_households(struct totals_of *totals) {
  size_t count = totals->shared ? households_count(totals->sum.households) : 0;
  int64_t most = totals->sum.bounds.wide;
  add_late(totals);
  for (size_t i = 0; i < count; i++) {
    int was_clipped = household_project(&totals->shared[i], 1, most, 0);
    totals->sum.tally.households_clipped += was_clipped;
    totals->sum.tally.households_whole -= was_clipped;
    totals->sum.total += totals->shared[i];
  }
}

int scalar_sum_total(struct scalar_sum *accumulator, int128 *total) {
  struct totals_of totals = {.sum = *accumulator};
  int has_shared = accumulator->units && accumulator->households;
  if (accumulator->units) totals.sum.tally = (struct tally){.whole = 0};
  if (has_shared)
    totals.shared = calloc(households_count(accumulator->households) + 1, sizeof *totals.shared);
  int has_tallies = has_shared && accumulator->bounds.ladder.shared;
  if (has_tallies) totals.tallies = partitioned_sums_open(&accumulator->units->secret, 1, 0);
  int is_whole = (totals.shared || !has_shared) && (totals.tallies || !has_tallies) &&
                 (!accumulator->units || scalar_sum_records(accumulator, take_total, &totals));
  if (has_shared) add_households(&totals);
  if (is_whole && has_tallies)
    is_whole = tally_bound(&totals.sum.tally, totals.tallies, &accumulator->bounds.ladder);
  if (has_tallies) partitioned_sums_close(totals.tallies);
  free(totals.shared);
  *total = totals.sum.total;
  accumulator->tally = totals.sum.tally;
  return is_whole;
}
