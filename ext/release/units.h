/*
** units.h: from rows to one exact total: contributions of privacy units, bounded and summed.
**
** This is where floating point ends. A row's value becomes an integer number of fine lattice steps
** (times a power of two, rounded to nearest); everything after is exact integer addition, so the
** total does not depend on the order of rows. Requirements:
**   U1  The total of one unit is clamped to [low, high] however many rows it has.
**   U2  Without units every row is clamped by itself.
**   U3  No value of a row is an error: infinities and huge values saturate.
** Which rows are of one unit is identity.h's business.
*/
#ifndef DIFFUSE_RELEASE_UNITS_H
#define DIFFUSE_RELEASE_UNITS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "release/table.h"

/* What bounds a contribution, in fine steps. */
struct bounds {
  double scale;                  /* fine steps per unit of the value: a power of two */
  double low, high;              /* range of one unit's total: integers, |.| <= 2^53 */
  int64_t low_steps, high_steps; /* the same as integers */
};

/* A row, or neighbouring rows of one unit, on the way to the table. */
struct waiting {
  struct identity unit;
  uint64_t place;
  int128 steps;
};

/*
** Totals by unit. Rows wait in a batch whose lines in the table are prefetched; flushing the batch finds them
** near.
*/
struct units {
  struct hash_table table;
  int count;  /* of those that wait */
  int failed; /* memory ran out and rows were lost: sticks */
  struct waiting batch[TABLE_BATCH];
  struct secret secret;
};

/* An accumulator: with a table where units are protected, without where rows are. */
struct accumulator {
  struct bounds bounds;
  int128 total; /* of the rows, without a table */
  struct units *units;
};

/* A value in fine steps, to nearest, saturated at +-2^LATTICE_ROW_BITS (U3). */
static inline int128 fine_steps(double value, double scale) {
  double x = value * scale;
  if (fabs(x) < 0x1p62) return llrint(x);
  int128 limit = (int128)1 << LATTICE_ROW_BITS;
  if (x >= 0x1p90) return limit;
  if (x <= -0x1p90) return -limit;
  return x == x ? (int128)x : 0; /* doubles of this size are integers already */
}

/* Starts an accumulator. Returns 0, or -1 when memory or entropy ran out. */
int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit);
void accumulator_close(struct accumulator *accumulator);

/* Adds a row without a unit (U2). Here, so that the loop over rows is as short as SQLite's own sum(). */
static inline void accumulate_row(struct accumulator *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  steps = steps > bounds->low ? steps : bounds->low; /* two instructions, no branches */
  steps = steps < bounds->high ? steps : bounds->high;
  accumulator->total += llrint(steps);
}

/* Empties the batch into the table. Returns 0, or -1 when memory ran out. */
int units_flush(struct units *units);

/* Adds a row of a unit (U1). Returns 0, or -1 when memory ran out. */
static inline int accumulate_unit(struct accumulator *accumulator, struct identity unit,
                                  double value) {
  struct units *units = accumulator->units;
  int128 steps = fine_steps(value, accumulator->bounds.scale);
  struct waiting *row = &units->batch[units->count];
  if (units->count && identity_same(row[-1].unit, unit)) {
    row[-1].steps += steps;
    return 0;
  }
  row->unit = unit;
  row->place = table_place(&units->table, unit, 0);
  row->steps = steps;
  table_prefetch(&units->table, row->place);
  return ++units->count == TABLE_BATCH ? units_flush(units) : 0;
}

/*
** What has been added up elsewhere: the rows of one unit (U1), and contributions that have been bounded
** already, of units that have no rows here. They saturate at +-2^125 (lattice_add). Without a table the
** latter only; the former returns 0, or -1 when memory ran out.
*/
int accumulate_steps(struct accumulator *accumulator, struct identity unit, int128 steps);
void accumulate_total(struct accumulator *accumulator, int128 total);

/*
** Hands over what every unit has in one cell: exact sums of its rows, before they are bounded. Stops when
** `take` returns -1.
*/
typedef int take_record(void *context, struct identity unit, uint32_t cell, const int128 *values);

/* Hands over the total of every unit, as cell 0. Returns 0, or -1 when memory ran out or take said so. */
int accumulator_records(struct accumulator *accumulator, take_record *take, void *context);

/* The secret under which the units of an accumulator are hashed; it must have a table. */
const struct secret *accumulator_secret(const struct accumulator *accumulator);

/* Sets *total to the exact total of all contributions. Returns 0, or -1 when memory ran out. */
int accumulator_total(struct accumulator *accumulator, int128 *total);

#endif
