/*
** scalar_sum.h: from rows to one exact total. The contributions of privacy units are bounded and
** added up.
**
** Floating point ends here. A row's value becomes an integer number of fine lattice steps (times a
** power of two, rounded to nearest). All later steps are exact integer additions, so the total does
** not depend on the order of rows. Requirements:
**   U1  The total of one unit is clamped to [low, high] however many rows it has.
**   U2  Without units each row is clamped on its own.
**   U3  No value of a row is an error: infinities and huge values saturate.
** identity.h decides which rows belong to one unit.
*/
#ifndef DIFFUSE_SUMS_SCALAR_SUM_H
#define DIFFUSE_SUMS_SCALAR_SUM_H

#include <math.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "sums/partitioned_sums.h"
#include "sums/unit_table.h"

/* The bounds of a contribution, in fine steps. */
struct bounds {
  double scale;                  /* fine steps per unit of the value: a power of two */
  double low, high;              /* range of one unit's total: integers, |.| <= 2^53 */
  int64_t low_steps, high_steps; /* the same as integers */
};

/* Totals by unit. A table keeps the totals that fit 64 bits; a store keeps the larger ones. */
struct units {
  struct secret secret;
  struct unit_table integers, others;
  struct partitioned_sums *carried;
};

/* An accumulator. It keeps totals by unit if units are protected, and one total if rows are. */
struct scalar_sum {
  struct bounds bounds;
  int128 total; /* of rows without a unit */
  struct units *units;
};

/* A value in fine steps, rounded to nearest and saturated at +-2^LATTICE_ROW_BITS (U3). */
static inline int128 fine_steps(double value, double scale) {
  double x = value * scale;
  if (fabs(x) < 0x1p62) return llrint(x);
  int128 limit = (int128)1 << LATTICE_ROW_BITS;
  if (x >= 0x1p90) return limit;
  if (x <= -0x1p90) return -limit;
  return x == x ? (int128)x : 0; /* doubles of this size are integers already */
}

/* Starts an accumulator. Returns 1, or 0 when memory or entropy ran out. */
int scalar_sum_open(struct scalar_sum *accumulator, const struct bounds *bounds, int by_unit);
void scalar_sum_close(struct scalar_sum *accumulator);

/*
** Adds a row without a unit (U2). The function is inline so that the loop over rows is as short as
** that of SQLite's own sum().
*/
static inline void scalar_sum_add_row(struct scalar_sum *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  steps = steps > bounds->low ? steps : bounds->low; /* two instructions, no branches */
  steps = steps < bounds->high ? steps : bounds->high;
  accumulator->total += llrint(steps);
}

/* Empties the batch of a table. Returns 1, or 0 when memory ran out. */
int units_flush(struct units *units, struct unit_table *table);

/*
** Adds a row of a unit (U1). Returns 1, or 0 when memory ran out for this row or for one that
** waited.
*/
int scalar_sum_add_large(struct scalar_sum *accumulator, struct identity unit, double value);
static inline int scalar_sum_add_unit(struct scalar_sum *accumulator, struct identity unit,
                                      double value) {
  struct units *units = accumulator->units;
  double steps = value * accumulator->bounds.scale;
  if (!(fabs(steps) < (double)TABLE_MOST)) return scalar_sum_add_large(accumulator, unit, value);
  struct unit_table *table = unit.kind == IDENTITY_INTEGER ? &units->integers : &units->others;
  return unit_table_add(table, unit, llrint(steps)) ? units_flush(units, table) : 1;
}

/*
** Add sums from elsewhere. scalar_sum_add_steps() adds the rows of one unit (U1) and returns 1, or
** 0 when out of memory. scalar_sum_add_total() adds contributions that are already bounded, of
** units that have no rows here. Both saturate at +-2^125.
*/
int scalar_sum_add_steps(struct scalar_sum *accumulator, struct identity unit, int128 steps);
void scalar_sum_add_total(struct scalar_sum *accumulator, int128 total);

/*
** Hands over the total of every unit, before it is bounded, as cell 0 (see partitioned_sums_each).
*/
int scalar_sum_records(struct scalar_sum *accumulator, take_record *take, void *context);

/*
** The secret under which the units of an accumulator are hashed. The accumulator must be by unit.
*/
const struct secret *scalar_sum_secret(const struct scalar_sum *accumulator);

/* Sets *total to the exact total of all contributions. Returns 1, or 0 when memory ran out. */
int scalar_sum_total(struct scalar_sum *accumulator, int128 *total);

#endif
